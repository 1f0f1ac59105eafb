// Decisions about a version and a block: going on from there in a conversation of its own; hiding, pinning, and back.

import { shellWord, whole } from "../pure/format.js";
import { writeAddress } from "../pure/address.js";
import { Decisions, allowed } from "../parts/deciding.js";
import { html, useState, useValue } from "../parts/page.js";
import { Command } from "../parts/pieces.js";

/** Going on from the version that is looked at. @param {{ id: string, at: number }} props */
export function ForkFrom({ id, at }) {
  const takes = useValue(allowed);
  const [branch, setBranch] = useState({ id: "", at: 0 });
  const command = html`<${Command} text=${`timeline fork ${shellWord(id)} --at ${at}`} />`;
  const about = `A fork shares the log up to version ${whole(at)} and goes on by itself; this conversation does not change.`;
  if (!takes.includes("fork")) return html`<section class="fork-from" aria-label="Fork"><h3>Go on from here</h3><p class="faint">${about}</p>${command}</section>`;
  const choice = { key: "fork", label: "Fork", given: { decision: "fork", at }, field: { name: "new_id", label: "Its id", placeholder: `${id}.fork-${at}` } };
  return html`<div class="fork-from">
    <${Decisions} id=${id} title="Go on from here" note=${about} choices=${[choice]} onDone=${(/** @type {any} */ answer) => setBranch({ id: answer.conversation, at })} />
    ${branch.id && html`<p><a href=${writeAddress({ conversation: branch.id, view: "", given: {} })}>Open ${branch.id}</a></p>`}
    <details class="ways"><summary>In a terminal</summary>${command}</details>
  </div>`;
}

/** @type {Record<string, [string, string, Record<string, any>][]>} */
const ABOUT_BLOCKS = {
  hide: [["hide", "Hide it", {}], ["omit", "Leave it out", { mode: "omit" }]],
  reveal: [["reveal", "Show it again", {}]],
  pin: [["pin", "Pin it", {}]],
  unpin: [["unpin", "Unpin it", {}]],
};

/**
 * What can be decided about a block now; a decision is about the newest version, whichever is looked at.
 * @param {{ id: string, address: string, possible: string[], at: number, version: number }} props
 */
export function DecideBlock({ id, address, possible, at, version }) {
  const choices = possible.flatMap((decision) =>
    (ABOUT_BLOCKS[decision] ?? []).map(([key, label, more]) => ({ key, label, given: { decision, block: address, ...more } })),
  );
  return html`<${Decisions} id=${id} title="Decide about it" note=${at === version ? null : `About the log as it is now, at version ${whole(version)}; a past version does not change.`} choices=${choices} />`;
}
