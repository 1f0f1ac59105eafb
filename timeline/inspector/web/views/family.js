// View 12: where the conversation comes from, and what was forked from it, each as a lane on the scale of versions.

import { counted, day, spaced, whole } from "../pure/format.js";
import { writeAddress } from "../pure/address.js";
import { Empty, Shown, useLoaded } from "../parts/loading.js";
import { html } from "../parts/page.js";
import { pathOf } from "../parts/source.js";
import { ForkFrom } from "./fork.js";

/** @param {{ id: string, row: any, at: number }} props */
export function Family({ id, row, at }) {
  const found = useLoaded(pathOf(id, "family"), { _seen: row.version }, id);
  return html`<${Shown} answer=${found} of="The family" lines=${5}>${(/** @type {any} */ data) => {
    const members = placed(data.family);
    return html`<div class="family">
      ${members.length > 1 ? html`<${Lanes} members=${members} id=${id} />` : html`<${Empty} title="This conversation has no relatives"><p>Forks, subagents and attempts of it would be here, each as a lane.</p><//>`}
      ${data.left_out > 0 && html`<p class="faint">${counted(data.left_out, "relative")} more; timeline ls lists them all.</p>`}
      <${ForkFrom} id=${id} at=${at} />
    </div>`;
  }}<//>`;
}

/** The relatives, each with how far down it is. @param {any[]} family */
function placed(family) {
  /** @type {Map<string, number>} */
  const depths = new Map();
  return family.map((member) => {
    const depth = member.parent === null ? 0 : (depths.get(member.parent) ?? -1) + 1;
    depths.set(member.id, depth);
    return { ...member, depth };
  });
}

/** @param {{ members: any[], id: string }} props */
function Lanes({ members, id }) {
  const most = Math.max(1, ...members.map((member) => member.version));
  const share = (/** @type {number} */ version) => `${(100 * version) / most}%`;
  return html`<ol class="lanes" aria-label=${counted(members.length, "conversation")}>
    ${members.map((member) => html`<li key=${member.id} class=${member.id === id ? "lane here" : "lane"} style=${{ paddingLeft: `${14 * (member.depth ?? 0)}px` }}>
      <a href=${writeAddress({ conversation: member.id, view: "family", given: {} })} aria-current=${member.id === id ? "page" : null}>${member.title || member.id}</a>
      <span class="faint">${member.relation ? `${spaced(member.relation)}, ` : ""}${member.at ? `at version ${whole(member.at)}, ` : ""}to ${whole(member.version)}, ${day(member.updated_at)}</span>
      <span class="lane-bar" role="img" aria-label=${`versions ${member.base + 1} to ${member.version}`}><i class="shared" style=${{ width: share(member.base ?? 0) }}></i><i class="own" style=${{ left: share(member.base ?? 0), width: share(member.version - (member.base ?? 0)) }}></i></span>
    </li>`)}
  </ol>`;
}
