// Decisions from the page, where the server takes them: what one would do is shown first, then it is done or left.

import { decided, tried } from "../pure/decided.js";
import { html, signal, useEffect, useLayoutEffect, useRef, useState, useValue } from "./page.js";
import { pathOf, returns, source } from "./source.js";
import { say } from "./state.js";

/**
 * @typedef {object} Choice
 * @property {string} key its name among the choices
 * @property {string} label
 * @property {Record<string, any> & { decision: string }} given what is sent
 * @property {{ name: string, label: string, placeholder?: string } | null} [field] a text that may be given along
 */

/** The decisions that the server takes; none in a file, and none where it only reads. */
export const allowed = signal(/** @type {string[]} */ ([]));

/** What was tried, and what it said: exactly that is done then. @typedef {{ choice: Choice, given: Record<string, any>, text: string } | null} Tried */

/**
 * The choices as buttons; one that is pressed is tried, and says what it would do.
 * @param {{ id: string, title: string, note?: any, choices: Choice[], onDone?: (answer: any) => void }} props
 */
export function Decisions({ id, title, note = null, choices, onDone = undefined }) {
  const takes = useValue(allowed);
  const own = JSON.stringify([id, choices.map((choice) => choice.key)]); // a log that grows takes nothing away
  const [at, setAt] = useState({ own: "", open: /** @type {Tried} */ (null), error: "", done: "", busy: "" });
  const [texts, setTexts] = useState(/** @type {Record<string, string>} */ ({}));
  const shown = at.own === own || at.done ? at : { own, open: null, error: "", done: "", busy: "" };
  const said = useFocusAfter(shown);
  const offered = choices.filter((choice) => takes.includes(choice.given.decision));
  if (!offered.length && !shown.done) return null;
  const given = (/** @type {Choice} */ choice) => ({ ...choice.given, ...(choice.field && texts[choice.key]?.trim() ? { [choice.field.name]: texts[choice.key].trim() } : {}) });
  const ask = async (/** @type {Choice} */ choice, /** @type {Record<string, any>} */ sent, /** @type {boolean} */ dry) => {
    setAt({ own, open: dry ? null : shown.open, error: "", done: "", busy: choice.key });
    try {
      const answer = await source.now.decide?.(pathOf(id, "decisions"), { ...sent, dry_run: dry });
      if (dry) return setAt({ own, open: { choice, given: sent, text: tried(answer) }, error: "", done: "", busy: "" });
      const done = decided(answer);
      setAt({ own, open: null, error: "", done, busy: "" });
      say(done);
      returns.value += 1;
      onDone?.(answer);
    } catch (problem) {
      setAt({ own, open: null, error: String(/** @type {any} */ (problem).message ?? problem), done: "", busy: "" });
    }
    return undefined;
  };
  return html`<section class="decisions" aria-label=${title}>
    <h3>${title}</h3>
    ${note && html`<p class="faint">${note}</p>`}
    ${offered.filter((choice) => choice.field).map((choice) => html`<label key=${`field ${choice.key}`} class="decision-field">${choice.field?.label}<input type="text" value=${texts[choice.key] ?? ""} placeholder=${choice.field?.placeholder ?? ""} autocomplete="off" onInput=${(/** @type {any} */ event) => setTexts({ ...texts, [choice.key]: event.target.value })} /></label>`)}
    <div class="decision-row">${offered.map((choice) => html`<button key=${choice.key} aria-disabled=${shown.busy !== ""} onClick=${() => shown.busy || ask(choice, given(choice), true)}>${choice.label}…</button>`)}</div>
    ${shown.open && html`<${Asked} open=${shown.open} busy=${shown.busy !== ""} onDo=${() => shown.open && ask(shown.open.choice, shown.open.given, false)} onLeave=${() => setAt({ ...shown, open: null })} />`}
    <p role="status" tabindex="-1" ref=${said} class=${shown.error ? "decision-said bad" : "decision-said"}>${shown.error || shown.done || (shown.busy && !shown.open ? "Trying it …" : "")}</p>
  </section>`;
}

/**
 * What was pressed is gone once it was done or left: the focus goes to what is said of it, or back to the choice.
 * @param {{ open: Tried, done: string, error: string }} shown
 */
function useFocusAfter({ open, done, error }) {
  const said = useRef(/** @type {HTMLElement | null} */ (null));
  const opener = useRef(/** @type {Element | null} */ (null));
  useLayoutEffect(() => {
    if (open) {
      opener.current = document.activeElement;
      return;
    }
    const back = done || error ? said.current : opener.current;
    if (opener.current && document.activeElement === document.body) /** @type {HTMLElement | null} */ (back)?.focus({ preventScroll: true });
  }, [open]);
  return said;
}

/** What a decision would do, and the two ways on. @param {{ open: NonNullable<Tried>, busy: boolean, onDo: () => void, onLeave: () => void }} props */
function Asked({ open, busy, onDo, onLeave }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => box.current?.focus(), [open]);
  return html`<div class="asked" role="group" aria-label=${`${open.choice.label}?`} tabindex="-1" ref=${box} onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    onLeave();
  }}>
    <p>${open.text}</p>
    <div class="decision-row"><button class="primary" aria-disabled=${busy} onClick=${() => busy || onDo()}>${open.choice.label}</button><button onClick=${onLeave}>Leave it as it is</button></div>
  </div>`;
}
