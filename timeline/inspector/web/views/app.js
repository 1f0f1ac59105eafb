// The frame of the page: its head, the open view, what is wrong with the connection, and the keys.

import { clock } from "../pure/format.js";
import { allowed } from "../parts/deciding.js";
import { useLoaded } from "../parts/loading.js";
import { html, useEffect, useErrorBoundary, useRef, useState, useValue } from "../parts/page.js";
import { server, source } from "../parts/source.js";
import { address, go, spoken } from "../parts/state.js";
import { Conversation } from "./conversation.js";
import { Conversations } from "./conversations.js";
import { Help } from "./help.js";
import { SearchAll } from "./search.js";

export function App() {
  const { conversation, view, given } = useValue(address);
  const [help, setHelp] = useState(false);
  const [problem, again] = useErrorBoundary((error) => console.error(error));
  useEffect(() => {
    const seen = (/** @type {KeyboardEvent} */ event) => pressed(event, () => setHelp(true));
    addEventListener("keydown", seen);
    return () => removeEventListener("keydown", seen);
  }, []);
  const about = useLoaded(source.now.live ? "about" : null);
  useEffect(() => {
    allowed.value = about.data?.decisions ?? [];
  }, [about.data]);
  useEffect(() => {
    if (!conversation) document.title = "timeline";
  }, [conversation]);
  return html`<div class="page">
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    ${!source.now.moment && html`<${Head} query=${conversation ? "" : (given.query ?? "")} onHelp=${() => setHelp(true)} />`}
    <${Connection} />
    <main id="content" tabindex="-1" class=${conversation ? "wide" : ""}>
      ${problem
        ? html`<${Broken} problem=${problem} again=${again} />`
        : conversation
          ? html`<${Conversation} key=${conversation} id=${conversation} />`
          : view === "search"
            ? html`<${SearchAll} query=${given.query ?? ""} kind=${given.kind ?? ""} />`
            : html`<${Conversations} query=${given.query ?? ""} />`}
    </main>
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}
    <${Spoken} />
  </div>`;
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

/** @param {{ query: string, onHelp: () => void }} props */
function Head({ query, onHelp }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    if (field.current) field.current.value = query;
  }, [query]);
  const search = (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = field.current?.value.trim() ?? "";
    go({ conversation: "", view: text ? "search" : "", given: text ? { query: text } : {} });
  };
  return html`<header class="head">
    <a class="brand" href="#/" aria-label="timeline: all conversations"><${Sign} />timeline</a>
    <form role="search" onSubmit=${search}>
      <input ref=${field} id="search" type="search" placeholder="Search all conversations" aria-label="Search all conversations" autocomplete="off" spellcheck=${false} />
      <kbd aria-hidden="true">/</kbd>
    </form>
    <button class="quiet help" aria-label="Keys" title="Keys (?)" onClick=${onHelp}>?</button>
  </header>`;
}

function Sign() {
  return html`<svg class="sign" viewBox="0 0 20 20" aria-hidden="true"><path d="M2 14h5V9h5V5h6" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round" /><circle cx="12" cy="9" r="2.4" /></svg>`;
}

/** While the server is away: what is seen stays, and this line says how it is. */
function Connection() {
  const state = useValue(server);
  const since = useRef(0);
  if (state === "there") since.current = 0;
  else if (!since.current) since.current = Date.now();
  const at = `${clock(new Date(since.current).toISOString())} UTC`; // as all times of the page
  return html`<div role="status" class="connection-place">
    ${state === "away" &&
    html`<p class="connection"><b>The server does not answer</b> since ${at}. What is shown was read before then; it is read again as soon as the server is back. If it was stopped, run <code>timeline inspect</code> again.</p>`}
    ${state === "refused" &&
    html`<p class="connection"><b>This page has no access any more</b> since ${at}: the server was started again. What is shown was read before then. Open the address that <code>timeline inspect</code> printed.</p>`}
  </div>`;
}

/** A mistake of the page itself. @param {{ problem: any, again: () => void }} props */
function Broken({ problem, again }) {
  return html`<div class="empty failed" role="alert">
    <p class="empty-title">This view has a mistake of its own</p>
    <p>The log is not affected. Go to another view, or draw this one again.</p>
    <pre tabindex="0">${String(problem?.stack ?? problem)}</pre>
    <button onClick=${again}>Draw it again</button> <a href="#/" onClick=${again}>All conversations</a>
  </div>`;
}

function Spoken() {
  return html`<div class="unseen" role="status" aria-live="polite">${useValue(spoken)}</div>`;
}

/** Keys that work everywhere; a view listens to its own. @param {KeyboardEvent} event @param {() => void} help */
function pressed(event, help) {
  const on = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (on.closest?.("input:not([type=range]):not([type=checkbox]), textarea, select, dialog")) return;
  if (event.key === "/") {
    event.preventDefault();
    (document.getElementById("find") ?? document.getElementById("search"))?.focus();
  } else if (event.key === "?") help();
}
