// View 13: what happens now, by the elements that an application's own chat page can use too.

import { shellWord } from "../pure/format.js";
import { Empty, Failed, Loading } from "../parts/loading.js";
import { html, useEffect, useState } from "../parts/page.js";
import { Command } from "../parts/pieces.js";
import { pathOf, source } from "../parts/source.js";

/** @param {{ id: string, row: any }} props */
export function Live({ id, row }) {
  const [ready, setReady] = useState(/** @type {any} */ (null));
  const { live } = source.now;
  useEffect(() => {
    // Nobody waits for the elements who does not look at them.
    if (live) import("../timeline-ui/timeline-ui.js").then(() => setReady(true), setReady);
  }, [live]);
  if (!live) return html`<${Empty} title="This is a file"><p>It shows the log as it was when it was exported. Nothing comes in any more.</p><//>`;
  if (ready === null) return html`<${Loading} of="What happens now" />`;
  if (ready !== true) return html`<${Failed} error=${ready} of="What happens now" />`;
  const stream = `v1/${pathOf(id, "events")}`;
  const since = Math.max(0, row.version - 500);
  return html`<div class="live">
    <section class="card" aria-label="Now">
      <tl-context-usage src=${stream}></tl-context-usage>
      <tl-compaction-indicator src=${stream}></tl-compaction-indicator>
      <tl-compaction-error src=${stream}></tl-compaction-error>
    </section>
    <section class="card" aria-labelledby="live-title">
      <h2 id="live-title">Context management, newest last</h2>
      <tl-context-debug src=${stream} after=${since}></tl-context-debug>
    </section>
    <section>
      <p class="faint">The same stream in a terminal, and these elements on a chat page of your own:</p>
      <${Command} text=${`timeline watch ${shellWord(id)}`} />
      <${Command} text=${`<tl-context-usage src="/timeline/${stream}"></tl-context-usage>`} />
    </section>
  </div>`;
}
