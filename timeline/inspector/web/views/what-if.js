// View 10: the same log under another policy or limit. Nothing is written; the server replays it for itself.

import { counted, short, spaced, whole } from "../pure/format.js";
import { Empty, Shown, useLoaded } from "../parts/loading.js";
import { html, useState } from "../parts/page.js";
import { pathOf } from "../parts/source.js";
import { slide } from "../parts/state.js";

const POLICIES = ["balanced", "economical", "gentle", "cut_point", "priority_chain", "prune_then_summarize", "keep_ratio", "keep_last", "none", "claude-code", "opencode", "pi", "cline", "goose", "gemini-cli", "langchain", "deepagents", "crush", "strands"];

/** @param {{ id: string, row: any, found: any, given: Record<string, string> }} props */
export function WhatIf({ id, row, found, given }) {
  const [policy, setPolicy] = useState(given.policy ?? row.policy?.name ?? "balanced");
  const [limit, setLimit] = useState(given.limit ?? String(row.limit ?? 100000));
  const asked = given.policy && given.limit ? { policy: given.policy, limit: given.limit } : null;
  const run = (/** @type {Event} */ event) => {
    event.preventDefault();
    slide({ policy, limit });
  };
  const known = [...new Set([...(row.policy ? [row.policy.name] : []), ...POLICIES])];
  return html`<div class="what-if">
    <form class="choice" onSubmit=${run}>
      <label>Policy <select value=${policy} onChange=${(/** @type {any} */ event) => setPolicy(event.target.value)}>${known.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
      <label>Limit <input type="number" min="1000" max="10000000" step="1000" required value=${limit} onInput=${(/** @type {any} */ event) => setLimit(event.target.value)} /> tokens</label>
      <button class="primary">Replay</button>
    </form>
    ${asked ? html`<${Replayed} id=${id} asked=${asked} />` : html`<${Empty} title="What would another policy have done?"><p>The log is replayed event by event under the policy and the limit above. Nothing is written, and no model is called.</p><//>`}
  </div>`;
}

/** What is told of a replay, in this order. @type {[string, string, string][]} */
const FIGURES = [
  ["renders", "contexts made", ""],
  ["compactions", "compactions", ""],
  ["hides", "hides", "batches of old blocks that gave way"],
  ["largest", "largest context", "tokens"],
  ["over_limit", "contexts over the limit", ""],
  ["warm_hides", "hides with a warm cache", ""],
  ["typed_errors", "refusals", "what the engine said no to"],
];

/** @param {{ id: string, asked: { policy: string, limit: string } }} props */
function Replayed({ id, asked }) {
  const found = useLoaded(pathOf(id, "what-if"), asked, `${id} ${asked.policy} ${asked.limit}`);
  return html`<${Shown} answer=${found} of="The replay" lines=${6}>${(/** @type {any} */ data) => html`<div>
    <div class="scroll" tabindex="0" role="region" aria-label="Figures of the replay"><table>
      <thead><tr><th scope="col">figure</th><th scope="col" class="number">as it was</th><th scope="col" class="number">${data.policy}, ${short(data.max_tokens)}</th></tr></thead>
      <tbody>${FIGURES.filter(([name]) => data.simulation[name] !== undefined).map(([name, label, about]) => html`<tr key=${name}><th scope="row">${label}${about && html` <span class="faint">${about}</span>`}</th><td class="number">${whole(data.recorded[name])}</td><td class="number"><b>${whole(data.simulation[name])}</b></td></tr>`)}</tbody>
    </table></div>
    ${data.simulation.steps?.length > 0 && html`<h3 class="what-if-head">${counted(data.simulation.steps.length, "compaction")} in the replay</h3>
      <ol class="blocks">${data.simulation.steps.slice(0, 200).map((/** @type {any} */ step) => html`<li key=${step.version} class="step"><b>#${step.compaction_number}</b> <span>at version ${whole(step.version)}, ${spaced(step.reason)}</span> <span>${short(step.before_tokens)} → ${short(step.after_tokens)}</span> ${step.split_turn_id && html`<span class="faint">cut inside ${spaced(step.split_turn_id)}</span>`}</li>`)}</ol>`}
    ${data.simulation.errors?.length > 0 && html`<h3 class="what-if-head">Refused</h3><ul>${data.simulation.errors.slice(0, 50).map((/** @type {any} */ error, /** @type {number} */ place) => html`<li key=${place}>${typeof error === "string" ? error : JSON.stringify(error)}</li>`)}</ul>`}
  </div>`}<//>`;
}
