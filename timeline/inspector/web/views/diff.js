// View 9: what is different between the contexts of two calls, or of two conversations: what came, went and changed, and what it cost.

import { writeAddress } from "../pure/address.js";
import { clock, counted, percent, short, spaced, whole } from "../pure/format.js";
import { lastUpTo } from "../pure/stacking.js";
import { Empty, Shown, useLoaded } from "../parts/loading.js";
import { html } from "../parts/page.js";
import { Kind, State } from "../parts/pieces.js";
import { pathOf } from "../parts/source.js";
import { open, slide } from "../parts/state.js";
import { stateOf } from "../parts/words.js";

const FIRST = 40;

/** @param {{ id: string, at: number, points: any[], given: Record<string, string> }} props */
export function Diff({ id, at, points, given }) {
  const here = lastUpTo(points, at, (point) => point.version);
  if (given.other) return html`<${Across} id=${id} after=${points[here]} other=${given.other} />`;
  if (here < 1) return html`<${Empty} title="There are no two calls to compare yet"><p>Move the slider past the second call.</p><//>`;
  const after = points[here];
  const before = points.find((point) => String(point.number) === given.from && point.number < after.number) ?? points[here - 1];
  return html`<div class="diff">
    <div class="choice">
      <label>From call <select value=${String(before.number)} onChange=${(/** @type {any} */ event) => slide({ from: event.target.value })}>${nearby(points, here, before.number).map((point) => html`<option key=${point.number} value=${String(point.number)}>${point.number}, ${clock(point.at)}, ${short(point.total)} tokens</option>`)}</select></label>
      <span>to call <b>${after.number}</b>, ${clock(after.at)}, ${short(after.total)} tokens</span>
    </div>
    <${Found} id=${id} number=${after.number} asked=${{ a: `call:${before.number}`, b: `call:${after.number}` }} other="" />
  </div>`;
}

/** What the newest context of another conversation has, and this one's has not. @param {{ id: string, after: any, other: string }} props */
function Across({ id, after, other }) {
  if (!after) return html`<${Empty} title="Nothing was sent yet at this version"><p>Move the slider past a call: its context is compared with the newest one of ${other}.</p><//>`;
  return html`<div class="diff">
    <div class="choice"><span>From call <b>${after.number}</b> here, ${clock(after.at)}, ${short(after.total)} tokens, to the newest context of <a href=${writeAddress({ conversation: other, view: "context", given: {} })}>${other}</a></span>
      <button class="link" onClick=${() => slide({ other: "" })}>Compare calls of this conversation</button></div>
    <${Found} id=${id} number=${after.number} asked=${{ a: `call:${after.number}`, b: "last", other }} other=${other} />
  </div>`;
}

/** The calls to choose from: those just before, and a few far ones. @param {any[]} points @param {number} here @param {number} chosen */
function nearby(points, here, chosen) {
  const close = points.slice(Math.max(0, here - 60), here).reverse();
  const far = points.slice(0, Math.max(0, here - 60)).filter((point, place, all) => point.number === chosen || place % Math.ceil(all.length / 20) === 0);
  return [...close, ...far.reverse()];
}

/** Bytes are those of the form that call `number` was sent in. @param {{ id: string, number: number, asked: Record<string, string>, other: string }} props */
function Found({ id, number, asked, other }) {
  const called = useLoaded(pathOf(id, "calls"), { after: number - 1, limit: 1 }, id, 80);
  const sent = called.data?.calls[0]?.wire || null;
  const found = useLoaded(called.data || called.error ? pathOf(id, "diff") : null, { ...asked, wire: sent }, id, 80);
  return html`<${Shown} answer=${found} of="The difference" lines=${8}>${(/** @type {any} */ data) => {
    const diff = data.difference;
    const wire = diff.prefixes?.[1] ?? diff.prefixes?.[0];
    return html`<div>
      <p class="lead">${wire?.intact ? "Only appended: the prefix is the same, byte for byte." : wire ? html`The prefix broke after <b>${whole(wire.common_bytes)}</b> of ${whole(wire.before_bytes)} bytes of ${spaced(wire.wire)}${wire.cause ? html`: ${wire.cause.text}` : ""}.` : "The contexts have no wire form in common."}
        ${diff.reuse && html` With a warm cache ${short(diff.reuse.cached)} tokens are read from it and ${short(diff.reuse.processed)} processed${diff.reuse.cached + diff.reuse.processed ? `, ${percent(diff.reuse.cached / (diff.reuse.cached + diff.reuse.processed))} of it cheap` : ""}.`}
        ${diff.differs?.length > 0 && html` Different besides: ${diff.differs.map(spaced).join(", ")}.`}</p>
      ${wire?.first_difference && html`<${First} first=${wire.first_difference} />`}
      <${List} title=${other ? `Only in ${other}` : "Came"} sign="+" rows=${diff.entered} of=${other} />
      <${List} title=${other ? "Only here" : "Went"} sign="−" rows=${diff.left} />
      <${List} title="Changed" sign="~" rows=${diff.changed} />
      ${Object.entries(data.left_out ?? {}).map(([name, count]) => html`<p key=${name} class="faint">${whole(Number(count))} more in “${spaced(name)}”; timeline diff prints them.</p>`)}
      ${diff.summary && html`<${Lines} summary=${diff.summary} />`}
    </div>`;
  }}<//>`;
}

/** The first byte that differs, in both. @param {{ first: any }} props */
function First({ first }) {
  return html`<dl class="first">${["before", "after"].map((side) => html`<div key=${side}><dt>${side}</dt><dd><span class="faint">${first[`${side}_place`]}, byte ${whole(first.byte)}${first[`${side}_path`] && html`, <span class="mono">${first[`${side}_path`]}</span>`}</span><br /><code>${first[side]}</code></dd></div>`)}</dl>`;
}

/** Blocks; those of another conversation lead to it. @param {{ title: string, sign: string, rows: any[], of?: string }} props */
function List({ title, sign, rows, of = "" }) {
  if (!rows?.length) return null;
  const tokens = rows.reduce((sum, row) => sum + (row.shown_tokens ?? row.after_tokens ?? 0), 0);
  return html`<section class="diff-part"><h3><i aria-hidden="true">${sign}</i> ${title}: ${counted(rows.length, "block")}, ${short(tokens)} tokens</h3>
    <ol class="blocks">${rows.slice(0, FIRST).map((row) => html`<li key=${row.version ?? row.path} class="sent-block">
      ${of ? html`<a class="mono" href=${writeAddress({ conversation: of, view: "log", given: { at: String(row.version) } })}>@${row.version}</a>` : html`<button class="link mono" onClick=${() => open({ block: row.version ? `@${row.version}` : row.path })}>${row.version ? `@${row.version}` : row.path}</button>`}
      ${row.type && html`<${Kind} type=${row.type} />`}<span class="sent-why"><span class="mono path">${row.path}</span> <span>${row.before ? `was ${stateOf(row.before).label}; ` : ""}${row.reason ?? (row.covered_by ? `covered by @${row.covered_by}` : "")}</span></span>
      <span class="row-tokens">${whole(row.shown_tokens ?? row.after_tokens)}</span><${State} state=${row.state ?? row.after} /></li>`)}</ol>
    ${rows.length > FIRST && html`<p class="faint">and ${whole(rows.length - FIRST)} more; timeline diff prints them all.</p>`}
  </section>`;
}

/** How the summary changed, a line for a line. @param {{ summary: any }} props */
function Lines({ summary }) {
  return html`<section class="diff-part"><h3>The summary of compaction ${summary.before.compaction_number} became that of ${summary.after.compaction_number}</h3><${SummaryLines} lines=${summary.lines} /></section>`;
}

/** @type {Record<string, string>} */
const SIGNS = { added: "+", removed: "−", changed: "~", same: " ", skipped: "…" };

/** Lines of two summaries; `[-…-]` and `{+…+}` mark what went and came in one that changed. @param {{ lines: any[] }} props */
export function SummaryLines({ lines }) {
  return html`<pre class="lines" tabindex="0" role="region" aria-label="Changes of the summary">${lines.map((line, place) => html`<span key=${place} class=${`line-${line.kind}`}>${SIGNS[line.kind] ?? " "} ${line.kind === "changed" ? inside(line.text) : line.text}${"\n"}</span>`)}</pre>`;
}

/** @param {string} text */
function inside(text) {
  return text.split(/(\[-[\s\S]*?-\]|\{\+[\s\S]*?\+\})/).map((part, place) => {
    if (part.startsWith("[-")) return html`<del key=${place}>${part.slice(2, -2)}</del>`;
    return part.startsWith("{+") ? html`<ins key=${place}>${part.slice(2, -2)}</ins>` : part;
  });
}
