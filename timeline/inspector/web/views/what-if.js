// View 10: the same log under other policies or another limit, beside each other. Nothing is written; the server replays.

import { counted, money, percent, short, spaced, whole } from "../pure/format.js";
import { linesOf, policiesOf } from "../pure/replays.js";
import { Empty, Failed, Loading, useLoaded } from "../parts/loading.js";
import { html, useState } from "../parts/page.js";
import { POLICIES } from "../parts/policies.js";
import { pathOf } from "../parts/source.js";
import { linkTo, slide } from "../parts/state.js";

/** Policies that stand beside each other. */
const MOST = 4;

/** @param {{ id: string, row: any, points: any[], given: Record<string, string> }} props */
export function WhatIf({ id, row, points, given }) {
  const shown = policiesOf(given.policy, MOST);
  const [policy, setPolicy] = useState(shown[0] ?? row.policy?.name ?? "balanced");
  const [limit, setLimit] = useState(given.limit ?? String(row.limit ?? 100000));
  const run = (/** @type {Event} */ event) => {
    event.preventDefault();
    const beside = limit === given.limit ? shown.filter((name) => name !== policy) : [];
    slide({ policy: [...beside, policy].slice(-MOST).join(","), limit });
  };
  const known = [...new Set([...(row.policy ? [row.policy.name] : []), ...POLICIES])];
  return html`<div class="what-if">
    <form class="choice" onSubmit=${run}>
      <label>Policy <select value=${policy} onChange=${(/** @type {any} */ event) => setPolicy(event.target.value)}>${known.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
      <label>Limit <input type="number" min="1000" max="10000000" step="any" required value=${limit} onInput=${(/** @type {any} */ event) => setLimit(event.target.value)} /> tokens</label>
      <button class="primary">Replay</button>
      ${shown.length > 0 && html`<button type="button" class="quiet" onClick=${() => slide({ policy: null, limit: null })}>Clear all</button>`}
    </form>
    ${shown.length && given.limit
      ? html`<${Replayed} id=${id} policies=${shown} limit=${given.limit} points=${points} />`
      : html`<${Empty} title="What would another policy have done?"><p>The log is replayed event by event under the policy and the limit above, priced by the provider's cache rules, and searched for the facts that its answers used. Nothing is written, and no model is called. Up to ${MOST} replays are shown side by side.</p><//>`}
  </div>`;
}

/** One after the other: the server runs one at a time. @param {string} id @param {string[]} policies @param {string} limit */
function useReplays(id, policies, limit) {
  const found = [];
  let ready = true;
  for (let place = 0; place < MOST; place += 1) {
    const policy = policies[place];
    const answer = useLoaded(policy && ready ? pathOf(id, "what-if") : null, { policy: policy ?? "", max_tokens: limit }, `${id} ${policy} ${limit}`);
    ready = ready && (answer.data !== null || answer.error !== null);
    if (policy) found.push({ policy, ...answer });
  }
  return found;
}

/** What is said of a replay, in this order: its name, what it is, and both figures. @type {[string, string, (data: any) => any, (recorded: any) => any][]} */
const FIGURES = [
  ["cost", "calls and summaries", (data) => (data.priced ? (data.priced.priced ? money(data.priced.money) : html`${short(data.priced.units)} <span class="faint">base tokens</span>`) : "–"), (recorded) => money(recorded.cost)],
  ["with what it looks up", "and reads back what is out of sight", (data) => (data.priced ? (data.priced.priced ? money(data.priced.adjusted_money) : short(data.priced.adjusted_units)) : "–"), () => "–"],
  ["facts in sight", "of those that the recorded answers used", (data) => share(data.priced, "seen"), () => "–"],
  ["or one read away", "named by a path that can be read", (data) => share(data.priced, "reachable"), () => "–"],
  ["from cache", "of the tokens sent", (data) => (data.priced ? percent(data.priced.read / Math.max(1, data.priced.read + data.priced.written + data.priced.uncached)) : "–"), () => "–"],
  ["prefixes lost", "by their cause", (data) => (data.priced ? Object.entries(data.priced.collapses).map(([cause, times]) => `${spaced(cause)} ${times}`).join(", ") || "none" : "–"), () => "–"],
  ["compactions", "", (data) => whole((data.priced ?? data.simulation).compactions), (recorded) => whole(recorded.compactions)],
  ["blocks hidden", "old ones that gave way", (data) => whole((data.priced ?? data.simulation).hides), () => "–"],
  ["largest context", "tokens, as the provider counts", (data) => whole((data.priced ?? data.simulation).largest), (recorded) => whole(recorded.largest)],
  ["contexts over the limit", "", (data) => whole((data.priced ?? data.simulation).over_limit), (recorded) => whole(recorded.over_limit)],
  ["refusals", "what the engine said no to", (data) => whole(data.simulation.typed_errors), () => "–"],
];

/** @param {any} priced @param {string} how */
function share(priced, how) {
  if (!priced) return "–";
  const sum = (/** @type {string} */ name) => priced[`${name}_near`] + priced[`${name}_middle`] + priced[`${name}_far`];
  return sum("facts") ? html`${percent(sum(how) / sum("facts"))} <span class="faint">of ${whole(sum("facts"))}</span>` : "–";
}

/** @param {{ id: string, policies: string[], limit: string, points: any[] }} props */
function Replayed({ id, policies, limit, points }) {
  const replays = useReplays(id, policies, limit);
  const first = replays.find((one) => one.data)?.data;
  const waiting = replays.filter((one) => !one.data && !one.error);
  return html`<div>
    ${first && html`<${Lines} replays=${replays} points=${points} />
    <div class="scroll" tabindex="0" role="region" aria-label="Figures of the replays"><table>
      <thead><tr><th scope="col">figure</th><th scope="col" class="number">as it was</th>${replays.map((one) => html`<th key=${one.policy} scope="col" class="number">${one.policy}, ${short(Number(limit))}</th>`)}</tr></thead>
      <tbody>${FIGURES.map(([label, about, of, was]) => html`<tr key=${label}><th scope="row">${label}${about && html` <span class="faint">${about}</span>`}</th><td class="number">${was(first.recorded)}</td>${replays.map((one) => html`<td key=${one.policy} class="number"><b>${one.data ? of(one.data) : "…"}</b></td>`)}</tr>`)}</tbody>
    </table></div>`}
    ${replays.filter((one) => one.error).map((one) => html`<${Failed} key=${one.policy} error=${one.error} of=${`The replay under ${one.policy}`} />`)}
    ${waiting.length > 0 && html`<${Loading} of=${`The replay under ${waiting[0].policy}`} lines=${first ? 1 : 6} />`}
    ${first?.not_priced && html`<p class="faint">No cost: ${first.not_priced}.</p>`}
    ${replays.filter((one) => one.data?.priced && one.data.priced.compactions !== one.data.simulation.compactions).map((one) => html`<${Counted} key=${one.policy} data=${one.data} />`)}
    ${replays.filter((one) => one.data).map((one) => html`<${Steps} key=${one.policy} data=${one.data} />`)}
    ${first && html`<p class="what-if-more"><a href=${linkTo("lab", { policies: ["none", ...policies.filter((name) => name !== "none")].join(","), limits: limit })}>Compare these in the lab</a>: plots of cost against what stays in sight, every call, and where two policies differ.</p>`}
  </div>`;
}

/** Why the table and the list of steps do not count the same. @param {{ data: any }} props */
function Counted({ data }) {
  const { priced, simulation } = data;
  return html`<p class="faint">${data.policy} compacts ${counted(priced.compactions, "time")} in the table, ${simulation.compactions} in the list below: the table counts as the provider did, with ${whole(priced.fixed)} tokens of system prompt and tools in each call; the list counts the log alone, with its own counter.</p>`;
}

/** The tokens of each call, as they were and as they would have been; the table says the same in figures. @param {{ replays: any[], points: any[] }} props */
function Lines({ replays, points }) {
  const there = replays.filter((one) => one.data?.calls.length);
  if (!there.length) return null;
  const was = points.map((point) => ({ number: point.number, tokens: point.total }));
  const { most, paths } = linesOf([was, ...there.map((one) => one.data.calls)], 1000, 130);
  return html`<figure class="replay-lines">
    <ul class="legend-line"><li><i class="line-0"></i>as it was</li>${there.map((one, place) => html`<li key=${one.policy}><i class=${`line-${place + 1}`}></i>${one.policy}</li>`)}<li>up to ${short(most)} tokens a call</li></ul>
    <svg viewBox="0 0 1000 134" preserveAspectRatio="none" aria-hidden="true">${paths.map((path, place) => html`<path key=${place} class=${`line-${place}`} d=${path} />`)}</svg>
  </figure>`;
}

/** @param {{ data: any }} props */
function Steps({ data }) {
  const { steps = [], errors = [] } = data.simulation;
  return html`<div>
    ${steps.length > 0 && html`<details class="ways"><summary>${data.policy} on the log alone, without system prompt and tools: ${counted(steps.length, "compaction")}</summary>
      <ol class="blocks">${steps.slice(0, 200).map((/** @type {any} */ step) => html`<li key=${step.version} class="step"><b>#${step.compaction_number}</b> <span>at version ${whole(step.version)}, ${spaced(step.reason)}</span> <span>${short(step.before_tokens)} → ${short(step.after_tokens)}</span> ${step.split_turn_id && html`<span class="faint">cut inside ${spaced(step.split_turn_id)}</span>`}</li>`)}</ol></details>`}
    ${errors.length > 0 && html`<h3 class="what-if-head">Refused under ${data.policy}</h3><ul>${errors.slice(0, 50).map((/** @type {any} */ error, /** @type {number} */ place) => html`<li key=${place}>${typeof error === "string" ? error : `${spaced(error.type ?? "")} ${error.message ?? JSON.stringify(error)}`}</li>`)}</ul>`}
  </div>`;
}
