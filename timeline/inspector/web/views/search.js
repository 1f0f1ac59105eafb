// View 11: texts found by their words and facts by theirs, in one conversation or in all of them, and compactions by what
// they covered.

import { clock, counted, day, spaced } from "../pure/format.js";
import { writeAddress } from "../pure/address.js";
import { Empty, Shown, useLoaded } from "../parts/loading.js";
import { html } from "../parts/page.js";
import { Kind, Snippet, State } from "../parts/pieces.js";
import { source } from "../parts/source.js";
import { linkTo, open, slide } from "../parts/state.js";
import { typeOf } from "../parts/words.js";

/** What was found in the open conversation, beside its view. @param {{ id: string, query: string, kind: string, at: number }} props */
export function SearchHere({ id, query, kind, at }) {
  return html`<aside class="panel" aria-labelledby="found-title">
    <div class="panel-head"><h2 id="found-title">Found</h2>${source.now.live && html`<${Kinds} kinds=${KINDS.slice(0, 2)} chosen=${kind} />`}<button class="quiet close" aria-label="Close the search" onClick=${() => slide({ query: null, kind: null })}>✕</button></div>
    <div class="panel-body">${kind === "fact" ? html`<${FactsHere} id=${id} query=${query} at=${at} />` : html`<${SaidHere} id=${id} query=${query} at=${at} />`}</div>
  </aside>`;
}

/** @param {{ id: string, query: string, at: number }} props */
function SaidHere({ id, query, at }) {
  const found = useLoaded("search", { query, conversation: id, limit: 50 }, id, 200);
  return html`<${Shown} answer=${found} of="What was found" lines=${6}>${(/** @type {any} */ data) =>
    data.found.length
      ? html`<p class="faint" role="status">${counted(data.found.length, "block")}${data.more ? ", and more" : ""}</p><ul class="found" onKeyDown=${moved}>${data.found.map((/** @type {any} */ one) => html`<li key=${one.version}><button class="found-row" onClick=${() => open({ block: `@${one.version}` })}>
          <span class="found-head"><${Kind} type=${one.type} /> <span class="mono">@${one.version}</span>${one.version > at ? html` <span class="faint">later</span>` : ""}${one.call ? html` <span class="faint">call ${one.call}</span>` : ""}${one.reverted_by ? html` <span class="faint">undone</span>` : ""}</span>
          <span class="snippet"><${Snippet} text=${one.snippet} query=${query} /></span></button></li>`)}</ul>`
      : html`<${Empty} title="No block has all of these words"><p>${source.now.live ? "Whole words are searched; log* finds all that begin with log. What was done and named is among the facts. " : ""}Summaries are searched, too.</p><//>`}<//>`;
}

/** @param {{ id: string, query: string, at: number }} props */
function FactsHere({ id, query, at }) {
  const found = useLoaded("facts", { query, conversation: id, limit: 50 }, `facts ${id}`, 200);
  return html`<${Shown} answer=${found} of="What was found" lines=${6}>${(/** @type {any} */ data) =>
    data.facts.length
      ? html`<p class="faint" role="status">${counted(data.facts.length, "fact")}${data.more ? ", and older ones" : ""}, newest first</p><ul class="found" onKeyDown=${moved}>${data.facts.map((/** @type {any} */ one, /** @type {number} */ place) => html`<li key=${place}>
          <button class="found-row" onClick=${() => open({ block: `@${one.version}` })}><${Fact} fact=${one} later=${one.version > at} /></button>
          <${Cover} fact=${one} href=${linkTo("compactions", { compaction: one.covered_by, block: null })} /></li>`)}</ul>`
      : html`<${NoFact} />`}<//>`;
}

/** One thing that was done, named or asked for, how it came out, and its state. @param {{ fact: any, later?: boolean }} props */
function Fact({ fact, later = false }) {
  const outcome = [fact.failed ? "failed" : "", fact.exit_status === null ? "" : `exit ${fact.exit_status}`].filter(Boolean).join(", ");
  return html`<span class="found-head"><${Kind} type=${FACT_TYPES[fact.kind] ?? "react.tool.result"} name=${spaced(fact.kind)} /> <span class="mono">@${fact.version}</span>${fact.tool ? html` <span class="faint">${fact.tool}</span>` : ""}${outcome && html` <span class=${fact.failed ? "bad" : "faint"}>${outcome}</span>`}${later && html` <span class="faint">later</span>`}${fact.covered_by === null && fact.state && html` <${State} state=${fact.state} />`}</span>
    <span class=${fact.kind === "request" ? "snippet" : "snippet mono"}>${fact.subject}</span>${fact.detail && html`<span class="snippet faint">${fact.detail}</span>`}`;
}

/** The compaction whose summary stands for it. @param {{ fact: any, href: string }} props */
function Cover({ fact, href }) {
  if (fact.covered_by === null) return null;
  return html`<p class="fact-place"><span aria-hidden="true">○</span> <a href=${href}>covered by compaction ${fact.compaction_number ?? `@${fact.covered_by}`}</a></p>`;
}

function NoFact() {
  return html`<${Empty} title="No fact has all of these words"><p>Facts are what was done, named and asked for: files, commands with their status, searches, errors, addresses, requests. The search looks at their subject, tool and detail.</p><//>`;
}

/** The colours of kinds of facts. @type {Record<string, string>} */
const FACT_TYPES = { request: "user.prompt", url: "note", identifier: "note", command: "react.tool.call", file_written: "react.tool.call", file_deleted: "react.tool.call" };

/** @param {KeyboardEvent} event */
function moved(event) {
  const step = event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
  if (!step) return;
  const rows = /** @type {HTMLElement[]} */ ([.../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll(".found-row")]);
  rows[rows.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + step]?.focus();
  event.preventDefault();
}

/** What is searched: what was said, or what compactions covered; the name of the filter that takes the text. @type {[string, string][]} */
const KINDS = [
  ["", "Texts"],
  ["fact", "Facts"],
  ["path", "Files covered"],
  ["tool", "Tools used"],
  ["command", "Commands run"],
  ["error_text", "Errors met"],
];

/** @param {{ kinds: [string, string][], chosen: string }} props */
function Kinds({ kinds, chosen }) {
  return html`<div class="choice" role="group" aria-label="What is searched">${kinds.map(([name, label]) => html`<button key=${name} aria-pressed=${name === chosen} onClick=${() => slide({ kind: name || null })}>${label}</button>`)}</div>`;
}

/** @param {{ query: string, kind: string }} props */
export function SearchAll({ query, kind }) {
  const chosen = KINDS.some(([name]) => name === kind) ? kind : "";
  return html`<section class="search-all" aria-labelledby="title">
    <h1 id="title">Found for <q>${query}</q></h1>
    ${source.now.live && html`<${Kinds} kinds=${KINDS} chosen=${chosen} />`}
    ${chosen === "fact" ? html`<${Known} query=${query} />` : chosen ? html`<${Covered} query=${query} kind=${chosen} />` : html`<${Said} query=${query} />`}
  </section>`;
}

/** Facts of all conversations. @param {{ query: string }} props */
function Known({ query }) {
  const found = useLoaded("facts", { query, limit: 100 }, "facts", 100);
  return html`<${Shown} answer=${found} of="What was found" lines=${8}>${(/** @type {any} */ data) =>
    data.facts.length
      ? html`<p class="faint" role="status">${counted(data.facts.length, "fact")}${data.more ? ", and older ones: add a word to find less" : ""}</p>
          <ul class="found wide-found">${data.facts.map((/** @type {any} */ one, /** @type {number} */ place) => html`<li key=${place}><a class="found-row" href=${writeAddress({ conversation: one.conversation, view: "", given: { block: `@${one.version}`, query, kind: "fact" } })}>
            <span class="found-head"><b>${one.conversation}</b> <time datetime=${one.at}>${day(one.at)} ${clock(one.at)}</time></span><${Fact} fact=${one} /></a>
            <${Cover} fact=${one} href=${writeAddress({ conversation: one.conversation, view: "compactions", given: { compaction: String(one.covered_by) } })} /></li>`)}</ul>`
      : html`<${NoFact} />`}<//>`;
}

/** Compactions by what they covered. @param {{ query: string, kind: string }} props */
function Covered({ query, kind }) {
  const text = kind === "path" && !/[*?[]/.test(query) ? `**${query}**` : query;
  const found = useLoaded("digests", { [kind]: text, limit: 100 }, `digests ${kind}`, 100);
  return html`<${Shown} answer=${found} of="What was covered" lines=${8}>${(/** @type {any} */ data) =>
    data.digests.length
      ? html`<p class="faint" role="status">${counted(data.digests.length, "compaction")}${data.more ? ", and more" : ""} that covered it</p>
          <ul class="found wide-found">${data.digests.map((/** @type {any} */ one) => html`<li key=${`${one.conversation}@${one.version}`}><a class="found-row" href=${writeAddress({ conversation: one.conversation, view: "compactions", given: { compaction: String(one.version) } })}>
            <span class="found-head"><${Kind} type="conv.range.summary" name=${`Compaction ${one.compaction_number}`} /> <b>${one.conversation}</b> <span class="mono">@${one.version}</span> <time datetime=${one.at}>${day(one.at)} ${clock(one.at)}</time>${one.reverted_by ? html` <span class="faint">undone</span>` : ""}</span>
            <span class="snippet">${matches(one.matched).slice(0, 6).map((match, place) => html`<span key=${place} class="match">${match}</span>`)}</span></a></li>`)}</ul>`
      : html`<${Empty} title="No compaction covered it"><p>${kind === "path" ? "A path is found by any part of it, or by a glob such as src/*.py." : kind === "tool" ? "Tools are found by their whole name." : "The search looks into the records of what summaries cover."}</p><//>`}<//>`;
}

/** The entries of a digest that the filter selects, a line each. @param {Record<string, any>} matched @returns {string[]} */
function matches(matched) {
  return Object.entries(matched).flatMap(([name, value]) => (Array.isArray(value) ? value.map((one) => `${spaced(name)}: ${line(one)}`) : []));
}

/** @param {any} one */
function line(one) {
  if (one === null || typeof one !== "object") return String(one);
  const { file, command, message, tool, subject, times, count } = one;
  const said = [file ?? command ?? subject ?? tool, message, times > 1 || count > 1 ? `${times ?? count} times` : ""].filter(Boolean);
  return said.join(", ") || JSON.stringify(one);
}

/** @param {{ query: string }} props */
function Said({ query }) {
  const found = useLoaded("search", { query, limit: 100 }, "search", 100);
  return html`<${Shown} answer=${found} of="What was found" lines=${8}>${(/** @type {any} */ data) =>
      data.found.length
        ? html`<p class="faint" role="status">${counted(data.found.length, "block")}${data.more ? ", and more: add a word to find less" : ""}</p>
            <ul class="found wide-found">${data.found.map((/** @type {any} */ one) => html`<li key=${`${one.conversation}@${one.version}`}><a class="found-row" href=${writeAddress({ conversation: one.conversation, view: "", given: { at: String(one.version), block: `@${one.version}`, query } })}>
              <span class="found-head"><${Kind} type=${one.type} name=${typeOf(one.type).label} /> <b>${one.conversation}</b> <span class="mono">@${one.version}</span> <time datetime=${one.at}>${day(one.at)} ${clock(one.at)}</time>${one.reverted_by ? html` <span class="faint">undone</span>` : ""}</span>
              <span class="snippet"><${Snippet} text=${one.snippet} query=${query} /></span></a></li>`)}</ul>`
        : html`<${Empty} title="No block of any conversation has all of these words"><p>Try fewer words, or the beginning of one: log*. Names of conversations are filtered in <a href=${writeAddress({ conversation: "", view: "", given: { query } })}>the list</a>.</p><//>`}<//>`;
}
