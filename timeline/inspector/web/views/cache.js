// View 8: what each call read from the provider's cache, what it wrote, what was lost of it, why, and at what price.

import { writeAddress } from "../pure/address.js";
import { clock, counted, duration, money, percent, short, spaced, whole } from "../pure/format.js";
import { byCause, sentBy } from "../pure/losses.js";
import { Empty, Shown, useLoaded } from "../parts/loading.js";
import { html, useState } from "../parts/page.js";
import { pathOf } from "../parts/source.js";
import { address, linkTo } from "../parts/state.js";

const STEP = 40;

/** Causes as they are called here. @type {Record<string, string>} */
const CAUSES = { gap: "expired", model: "another model", below_minimum: "too short", other: "unexplained", hide: "hidden blocks", reveal: "shown again", undo: "an undo", tools: "other tools", system: "another system prompt" };

/** @param {{ id: string, row: any, at: number, points: any[] }} props */
export function CacheLane({ id, row, at, points }) {
  const [most, setMost] = useState(STEP);
  const until = points.filter((point) => point.version <= at).length;
  const found = useLoaded(pathOf(id, "calls"), { after: Math.max(0, (points[until - 1]?.number ?? until) - most), limit: most, _seen: row.version }, id, 80);
  return html`<${Shown} answer=${found} of="The calls" lines=${8}>${(/** @type {any} */ data) => {
    const rows = data.calls
      .map((/** @type {any} */ call, /** @type {number} */ place) => ({ ...call, cost: data.costs?.[place] ?? null, cache: data.cache?.[place] ?? null }))
      .filter((/** @type {any} */ call) => call.version <= at);
    if (!rows.length) return html`<${Empty} title="No call was recorded up to this version"><p>What a call read from the cache is in the usage that its provider reports; timeline.record takes it.</p><//>`;
    const largest = Math.max(1, ...rows.map((/** @type {any} */ call) => sentBy(call.usage)));
    return html`<div class="cache">
      <${Lead} rows=${rows} />
      <ul class="legend-line"><li><i class="part-read"></i>read from cache</li><li><i class="part-written"></i>written to cache</li><li><i class="part-plain"></i>neither</li></ul>
      <div class="scroll" tabindex="0" role="region" aria-label="Calls and their cache"><table>
        <thead><tr><th scope="col">call</th><th scope="col">at</th><th scope="col" class="lane-head">sent</th><th scope="col" class="number">cached</th><th scope="col" class="number">cost</th><th scope="col" class="number">lost</th><th scope="col">why, and what was decided before it</th></tr></thead>
        <tbody>${[...rows].reverse().map((call) => html`<${Lane} key=${call.number} call=${call} largest=${largest} />`)}</tbody>
      </table></div>
      ${rows[0].number > 1 && html`<button class="further" onClick=${() => setMost(most + STEP)}>Earlier calls</button>`}
    </div>`;
  }}<//>`;
}

/** What the cache did for these calls, and what broke it. @param {{ rows: any[] }} props */
function Lead({ rows }) {
  const sent = rows.reduce((sum, call) => sum + sentBy(call.usage), 0);
  if (!sent) return html`<p class="lead">These calls reported no usage, so nothing is known of the cache.</p>`;
  const read = rows.reduce((sum, call) => sum + call.usage.cache_read_tokens, 0);
  const known = rows.filter((call) => call.cache?.saved_cost !== null && call.cache?.saved_cost !== undefined);
  const saved = known.reduce((sum, call) => sum + call.cache.saved_cost, 0);
  const losses = byCause(rows);
  return html`<p class="lead">Of ${short(sent)} tokens that ${rows.length === 1 ? "this call" : `these ${whole(rows.length)} calls`} sent, <b>${percent(read / sent)}</b> came from the cache${known.length ? html`: ${saved < 0 ? html`writing to it cost <b>${money(-saved)}</b> more than it saved` : html`it saved <b>${money(saved)}</b>`}` : ""}.
    ${losses.length ? html` Prefixes were lost: ${losses.map((loss, place) => html`${place ? "; " : ""}<b>${CAUSES[loss.kind] ?? spaced(loss.kind)}</b> ${loss.times === 1 ? "once" : `${loss.times} times`}, ${short(loss.lost_tokens)} tokens${loss.extra_cost === null ? "" : `, ${money(loss.extra_cost)}`}`)}.` : " No prefix was lost."}</p>`;
}

/** @param {{ call: any, largest: number }} props */
function Lane({ call, largest }) {
  const used = call.usage;
  const { cache } = call;
  const written = used.cache_write_5m_tokens + used.cache_write_1h_tokens;
  const sent = sentBy(used);
  const width = (/** @type {number} */ tokens) => ({ width: `${(100 * tokens) / largest}%` });
  return html`<tr class=${cache?.lost_tokens ? "with-loss" : ""}>
    <th scope="row"><a href=${linkTo("context", { at: call.version })}>${call.number}</a></th>
    <td><time datetime=${call.at} title=${call.at}>${clock(call.at)}</time>${cache?.idle_seconds ? html` <span class="faint">+${duration(cache.idle_seconds)}</span>` : ""}</td>
    <td><span class="parts" role="img" aria-label=${`${whole(used.cache_read_tokens)} read, ${whole(written)} written, ${whole(used.input_tokens)} neither`}><i class="part-read" style=${width(used.cache_read_tokens)}></i><i class="part-written" style=${width(written)}></i><i class="part-plain" style=${width(used.input_tokens)}></i></span> <span class="faint">${short(sent)}</span></td>
    <td class="number">${sent ? percent(used.cache_read_tokens / sent) : "–"}</td>
    <td class="number">${money(call.cost)}</td>
    <td class="number">${cache?.lost_tokens ? html`<b>${short(cache.lost_tokens)}</b>${cache.extra_cost ? html` <span class="faint">${money(cache.extra_cost)}</span>` : ""}` : html`<span class="faint">–</span>`}</td>
    <td class="lane-why">${call.error ? html`<strong class="bad">failed</strong> ` : ""}${cache?.cause ? html`${cache.cause.likely ? "likely " : ""}<b>${CAUSES[cache.cause.kind] ?? spaced(cache.cause.kind)}</b>: ${cache.cause.version ? html`<a href=${linkTo("log", { at: cache.cause.version, block: null })}>@${cache.cause.version}</a> ` : ""}${cache.cause.text}. ` : ""}${call.decisions ? html`<a href=${writeAddress({ ...address.value, view: "context", given: { at: String(call.version) } })}>${counted(call.decisions, "decision")}</a>` : cache?.cause ? "" : html`<span class="faint">only appended</span>`}</td>
  </tr>`;
}
