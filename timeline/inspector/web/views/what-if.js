// View 10: the same log under another policy or limit. Nothing is written; the server replays it for itself.

import { duration, percent, short, spaced, whole } from "../pure/format.js";
import { Empty, Shown, useLoaded } from "../parts/loading.js";
import { html, useState } from "../parts/page.js";
import { pathOf } from "../parts/source.js";
import { slide } from "../parts/state.js";

const POLICIES = ["balanced", "cut_point", "priority_chain", "keep_ratio", "keep_last"];

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

/** @param {{ id: string, asked: { policy: string, limit: string } }} props */
function Replayed({ id, asked }) {
  const found = useLoaded(pathOf(id, "what-if"), asked, `${id} ${asked.policy} ${asked.limit}`);
  return html`<${Shown} answer=${found} of="The replay" lines=${6}>${(/** @type {any} */ data) => {
    const rows = Object.entries(data.what_if ?? data.result ?? data).filter(([, value]) => value === null || ["number", "string", "boolean"].includes(typeof value));
    return html`<dl class="pairs figures">${rows.map(([name, value]) => html`<div key=${name}><dt>${spaced(name)}</dt><dd>${figure(name, value)}</dd></div>`)}</dl>`;
  }}<//>`;
}

/** @param {string} name @param {any} value */
function figure(name, value) {
  if (typeof value !== "number") return value === null ? "–" : String(value);
  if (name.endsWith("seconds")) return duration(value);
  if (name.includes("share") || name.startsWith("mean_")) return percent(value);
  return name.includes("tokens") ? short(value) : Number.isInteger(value) ? whole(value) : value.toFixed(4);
}
