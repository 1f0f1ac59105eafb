// View 8: what each call read from the provider's cache, what it wrote, and what broke the prefix.

import { clock, money, percent, short, whole } from "../pure/format.js";
import { Empty, Shown, useLoaded } from "../parts/loading.js";
import { html, useState } from "../parts/page.js";
import { pathOf } from "../parts/source.js";
import { linkTo } from "../parts/state.js";

const STEP = 40;

/** @param {{ id: string, row: any, at: number, points: any[] }} props */
export function CacheLane({ id, row, at, points }) {
  const [most, setMost] = useState(STEP);
  const until = points.filter((point) => point.version <= at).length;
  const found = useLoaded(pathOf(id, "calls"), { after: Math.max(0, (points[until - 1]?.n ?? until) - most), limit: most, _seen: row.version }, id, 80);
  return html`<${Shown} answer=${found} of="The calls" lines=${8}>${(/** @type {any} */ data) => {
    const rows = data.calls.map((/** @type {any} */ call, /** @type {number} */ place) => ({ ...call, cost: data.costs?.[place] ?? null })).filter((/** @type {any} */ call) => call.version <= at);
    if (!rows.length) return html`<${Empty} title="No call was recorded up to this version"><p>What a call read from the cache is in the usage that its provider reports; timeline.record takes it.</p><//>`;
    const largest = Math.max(1, ...rows.map(sentBy));
    const sums = rows.reduce((/** @type {any} */ sum, /** @type {any} */ call) => ({ read: sum.read + call.usage.cache_read_tokens, sent: sum.sent + sentBy(call) }), { read: 0, sent: 0 });
    return html`<div class="cache">
      <p class="lead">${sums.sent ? html`Of ${short(sums.sent)} tokens that these ${whole(rows.length)} calls sent, <b>${percent(sums.read / sums.sent)}</b> came from the cache.` : "These calls reported no usage, so nothing is known of the cache."}</p>
      <ul class="legend-line"><li><i class="part-read"></i>read from cache</li><li><i class="part-written"></i>written to cache</li><li><i class="part-plain"></i>neither</li></ul>
      <div class="scroll" tabindex="0" role="region" aria-label="Calls and their cache"><table>
        <thead><tr><th scope="col">call</th><th scope="col">at</th><th scope="col" class="lane-head">sent</th><th scope="col" class="number">cached</th><th scope="col" class="number">cost</th><th scope="col">before it</th></tr></thead>
        <tbody>${[...rows].reverse().map((call) => html`<${Lane} key=${call.n} call=${call} largest=${largest} />`)}</tbody>
      </table></div>
      ${rows[0].n > 1 && html`<button class="further" onClick=${() => setMost(most + STEP)}>Earlier calls</button>`}
    </div>`;
  }}<//>`;
}

/** @param {any} call */
function sentBy(call) {
  const used = call.usage;
  return used.input_tokens + used.cache_read_tokens + used.cache_write_5m_tokens + used.cache_write_1h_tokens;
}

/** @param {{ call: any, largest: number }} props */
function Lane({ call, largest }) {
  const used = call.usage;
  const written = used.cache_write_5m_tokens + used.cache_write_1h_tokens;
  const sent = sentBy(call);
  const width = (/** @type {number} */ tokens) => ({ width: `${(100 * tokens) / largest}%` });
  return html`<tr>
    <th scope="row"><a href=${linkTo("context", { at: call.version })}>${call.n}</a></th>
    <td><time datetime=${call.at} title=${call.at}>${clock(call.at)}</time></td>
    <td><span class="parts" role="img" aria-label=${`${whole(used.cache_read_tokens)} read, ${whole(written)} written, ${whole(used.input_tokens)} neither`}><i class="part-read" style=${width(used.cache_read_tokens)}></i><i class="part-written" style=${width(written)}></i><i class="part-plain" style=${width(used.input_tokens)}></i></span> <span class="faint">${short(sent)}</span></td>
    <td class="number">${sent ? percent(used.cache_read_tokens / sent) : "–"}</td>
    <td class="number">${money(call.cost)}</td>
    <td>${call.error ? html`<strong class="bad">failed</strong> ` : ""}${call.decisions ? html`<a href=${linkTo("context", { at: call.version })}>${call.decisions === 1 ? "1 decision" : `${call.decisions} decisions`}</a>` : html`<span class="faint">only appended</span>`}</td>
  </tr>`;
}
