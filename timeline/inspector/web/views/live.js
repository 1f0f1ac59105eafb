// View 13: what happens now, by the elements that an application's own chat page can use too.

import { html } from "../parts/page.js";
import { Empty } from "../parts/loading.js";
import { source } from "../parts/source.js";

/** @param {{ id: string }} props */
export function Live({ id }) {
  if (!source.now.live) return html`<${Empty} title="This is a file"><p>It shows the log as it was when it was exported. Nothing comes in any more.</p><//>`;
  return html`<${Empty} title="Live"><p>${id}</p><//>`;
}
