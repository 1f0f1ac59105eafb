// Going on from the version that is looked at, in a conversation of its own.

import { shellWord, whole } from "../pure/format.js";
import { html } from "../parts/page.js";
import { Command } from "../parts/pieces.js";

/** @param {{ id: string, at: number }} props */
export function ForkFrom({ id, at }) {
  return html`<section class="fork-from" aria-label="Fork">
    <h3>Go on from here</h3>
    <p class="faint">A fork shares the log up to version ${whole(at)} and goes on by itself; this conversation does not change.</p>
    <${Command} text=${`timeline fork ${shellWord(id)} --at ${at}`} />
  </section>`;
}
