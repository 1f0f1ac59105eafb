// View 11: texts found by their words, in one conversation or in all of them, and compactions by what they covered.

import { clock, counted, day, spaced } from "../pure/format.js";
import { writeAddress } from "../pure/address.js";
import { Empty, Shown, useLoaded } from "../parts/loading.js";
import { html } from "../parts/page.js";
import { Kind, Snippet } from "../parts/pieces.js";
import { source } from "../parts/source.js";
import { open, slide } from "../parts/state.js";
import { typeOf } from "../parts/words.js";

/** What was found in the open conversation, beside its view. @param {{ id: string, query: string, at: number }} props */
export function SearchHere({ id, query, at }) {
  const found = useLoaded("search", { query, conversation: id, limit: 50 }, id, 200);
  return html`<aside class="panel" aria-labelledby="found-title">
    <div class="panel-head"><h2 id="found-title">Found</h2><button class="quiet close" aria-label="Close the search" onClick=${() => slide({ query: null })}>✕</button></div>
    <div class="panel-body">
      <${Shown} answer=${found} of="What was found" lines=${6}>${(/** @type {any} */ data) =>
        data.found.length
          ? html`<p class="faint" role="status">${counted(data.found.length, "block")}${data.more ? ", and more" : ""}</p><ul class="found" onKeyDown=${moved}>${data.found.map((/** @type {any} */ one) => html`<li key=${one.version}><button class="found-row" onClick=${() => open({ block: `@${one.version}` })}>
              <span class="found-head"><${Kind} type=${one.type} /> <span class="mono">@${one.version}</span>${one.version > at ? html` <span class="faint">later</span>` : ""}${one.call ? html` <span class="faint">call ${one.call}</span>` : ""}</span>
              <span class="snippet"><${Snippet} text=${one.snippet} /></span></button></li>`)}</ul>`
          : html`<${Empty} title="No block has all of these words"><p>A word is found from its beginning on; summaries are searched too.</p><//>`}<//>
    </div>
  </aside>`;
}

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
  ["file", "Files covered"],
  ["tool", "Tools used"],
  ["command", "Commands run"],
  ["error", "Errors met"],
];

/** @param {{ query: string, kind: string }} props */
export function SearchAll({ query, kind }) {
  const chosen = KINDS.some(([name]) => name === kind) ? kind : "";
  return html`<section class="search-all" aria-labelledby="title">
    <h1 id="title">Found for <q>${query}</q></h1>
    ${source.now.live && html`<div class="choice" role="group" aria-label="What is searched">${KINDS.map(([name, label]) => html`<button key=${name} aria-pressed=${name === chosen} onClick=${() => slide({ kind: name || null })}>${label}</button>`)}</div>`}
    ${chosen ? html`<${Covered} query=${query} kind=${chosen} />` : html`<${Said} query=${query} />`}
  </section>`;
}

/** Compactions by what they covered. @param {{ query: string, kind: string }} props */
function Covered({ query, kind }) {
  const text = kind === "file" && !/[*?[]/.test(query) ? `**${query}**` : query;
  const found = useLoaded("digests", { [kind]: text, limit: 100 }, `digests ${kind}`, 100);
  return html`<${Shown} answer=${found} of="What was covered" lines=${8}>${(/** @type {any} */ data) =>
    data.digests.length
      ? html`<p class="faint" role="status">${counted(data.digests.length, "compaction")}${data.more ? ", and more" : ""} that covered it</p>
          <ul class="found wide-found">${data.digests.map((/** @type {any} */ one) => html`<li key=${`${one.conversation}@${one.version}`}><a class="found-row" href=${writeAddress({ conversation: one.conversation, view: "compactions", given: { compaction: String(one.version) } })}>
            <span class="found-head"><${Kind} type="conv.range.summary" name=${`Compaction ${one.compaction_number}`} /> <b>${one.conversation}</b> <span class="mono">@${one.version}</span> <time datetime=${one.at}>${day(one.at)} ${clock(one.at)}</time>${one.reverted_by ? html` <span class="faint">undone</span>` : ""}</span>
            <span class="snippet">${matches(one.matched).slice(0, 6).map((match, place) => html`<span key=${place} class="match">${match}</span>`)}</span></a></li>`)}</ul>`
      : html`<${Empty} title="No compaction covered it"><p>${kind === "file" ? "A path is found by any part of it, or as a glob such as src/*.py." : kind === "tool" ? "Tools are found by their whole name." : "It is searched in the records of what summaries stand for."}</p><//>`}<//>`;
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
              <span class="found-head"><${Kind} type=${one.type} name=${typeOf(one.type).label} /> <b>${one.conversation}</b> <span class="mono">@${one.version}</span> <time datetime=${one.at}>${day(one.at)} ${clock(one.at)}</time></span>
              <span class="snippet"><${Snippet} text=${one.snippet} /></span></a></li>`)}</ul>`
        : html`<${Empty} title="No block of any conversation has all of these words"><p>Try fewer words. Names of conversations are filtered in <a href=${writeAddress({ conversation: "", view: "", given: { query } })}>the list</a>.</p><//>`}<//>`;
}
