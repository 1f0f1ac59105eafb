// View 12: where the conversation comes from, and what was forked from it, each as a lane on the scale of versions.

import { counted, day, spaced, whole } from "../pure/format.js";
import { writeAddress } from "../pure/address.js";
import { Empty, Shown, useLoaded } from "../parts/loading.js";
import { html } from "../parts/page.js";
import { pathOf } from "../parts/source.js";
import { linkTo } from "../parts/state.js";
import { ForkFrom } from "./fork.js";

/** @param {{ id: string, row: any, at: number }} props */
export function Family({ id, row, at }) {
  const found = useLoaded(pathOf(id, "family"), { _seen: row.version }, id);
  return html`<${Shown} answer=${found} of="The family" lines=${5}>${(/** @type {any} */ data) => {
    const members = placed(data.family);
    return html`<div class="family">
      ${members.length > 1 ? html`<${Lanes} members=${members} id=${id} />` : html`<${Empty} title="This conversation has no relatives"><p>Forks, subagents and attempts would be shown here, each as a lane.</p><//>`}
      ${data.stretches?.length > 0 && html`<${Stretches} stretches=${data.stretches} version=${row.version} at=${at} />`}
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
    const depth = member.parent === null ? 0 : (depths.get(member.parent.conversation) ?? -1) + 1;
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
      <span class="faint">${member.parent ? `${spaced(member.parent.relation)}, ` : ""}${member.parent?.version ? `at version ${whole(member.parent.version)}, ` : ""}to ${whole(member.version)}, ${day(member.updated_at)}${member.id === id ? "" : html`, <a href=${linkTo("diff", { other: member.id })} aria-label=${`compare with ${member.title || member.id}`}>compare</a>`}</span>
      <span class="lane-bar" role="img" aria-label=${`versions ${member.base + 1} to ${member.version}`}><i class="shared" style=${{ width: share(member.base ?? 0) }}></i><i class="own" style=${{ left: share(member.base ?? 0), width: share(member.version - (member.base ?? 0)) }}></i></span>
    </li>`)}
  </ol>`;
}

/** What came of a stage or an attempt: a sign beside its word. @type {Record<string, string>} */
const OUTCOMES = { approved: "✓", completed: "✓", failed: "▲", rewound: "↶", open: "…" };

/** Stages of the work and attempts to compact, on the scale of this conversation's versions. @param {{ stretches: any[], version: number, at: number }} props */
function Stretches({ stretches, version, at }) {
  const share = (/** @type {number} */ place) => (100 * place) / Math.max(1, version);
  return html`${["stage", "attempt"].map((kind) => {
    const mine = stretches.filter((one) => one.kind === kind);
    if (!mine.length) return "";
    const several = mine.some((one) => one.outcome === "failed" || one.outcome === "rewound");
    return html`<section key=${kind} class="stretches"><h3>${kind === "stage" ? counted(mine.length, "stage") : counted(mine.length, "attempt to compact", "attempts to compact")}${several ? "" : kind === "attempt" ? ", none of which failed" : ""}</h3>
      <ol class="lanes">${mine.slice(-60).map((one) => html`<li key=${one.first} class=${`lane outcome-${one.outcome}`}>
        <span><i aria-hidden="true">${OUTCOMES[one.outcome]}</i> <b>${spaced(one.name)}</b> <span class="faint">${one.outcome}, <a href=${linkTo("log", { at: one.first })}>${whole(one.first)}</a>${one.last && one.last !== one.first ? html` to <a href=${linkTo("log", { at: one.last })}>${whole(one.last)}</a>` : ""}${one.first > at ? ", later" : ""}</span></span>
        ${one.text && html`<span class="stretch-text">${one.text}</span>`}
        <span class="lane-bar" aria-hidden="true"><i class="own" style=${{ left: `${share(one.first - 1)}%`, width: `max(3px, ${share((one.last ?? version) - one.first + 1)}%)` }}></i></span>
      </li>`)}</ol></section>`;
  })}`;
}
