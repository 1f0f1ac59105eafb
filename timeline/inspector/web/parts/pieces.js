// Small elements that several views show.

import { marked, pieces } from "../pure/marks.js";
import { percent, short, whole } from "../pure/format.js";
import { html, useEffect, useState } from "./page.js";
import { say } from "./state.js";
import { sharesIn, stateOf, typeOf } from "./words.js";

/** A block's state as shape and word. @param {{ state: string }} props */
export function State({ state }) {
  const { label, sign, about } = stateOf(state);
  return html`<span class=${`state state-${(state ?? "visible").replace(" ", "_")}`} title=${about}><i aria-hidden="true">${sign}</i>${label}</span>`;
}

/** @param {{ type: string, name?: string }} props */
export function Kind({ type, name }) {
  const { label, kind } = typeOf(type);
  return html`<span class=${`kind kind-${kind}`}>${name ?? label}</span>`;
}

/** Text with hits marked. @param {{ text: string, query?: string }} props */
export function Marked({ text, query }) {
  if (!query) return text;
  return pieces(text, query).map((piece, place) => (piece.hit ? html`<mark key=${place}>${piece.text}</mark>` : piece.text));
}

/** A snippet of the search. @param {{ text: string, query: string }} props */
export function Snippet({ text, query }) {
  return marked(text, query).map((piece, place) => (piece.hit ? html`<mark key=${place}>${piece.text}</mark>` : piece.text));
}

/** A button that copies a text and says so in its own place. @param {{ text: string, label?: string }} props */
export function Copy({ text, label = "Copy" }) {
  const [done, setDone] = useState("");
  useEffect(() => {
    if (!done) return undefined;
    const timer = setTimeout(() => setDone(""), 1600);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone("Copied");
      say("Copied.");
    } catch {
      setDone("Not allowed here"); // the browser keeps the clipboard; the text can be selected
    }
  };
  return html`<button class="quiet copy" onClick=${copy}><span class=${done ? "gone" : ""}>${label}</span>${done && html`<span class="over">${done}</span>`}</button>`;
}

/** A command to be typed in. @param {{ text: string }} props */
export function Command({ text }) {
  return html`<div class="command"><code>${text}</code><${Copy} text=${text} /></div>`;
}

/**
 * How full a context is: its shares in order, the trigger and the target as lines.
 * @param {{ fill: Record<string, number>, total: number, limit: number, trigger?: number | null, target?: number | null, slim?: boolean }} props
 */
export function Gauge({ fill, total, limit, trigger = null, target = null, slim = false }) {
  const most = Math.max(limit, total, 1);
  const at = (/** @type {number} */ tokens) => `${Math.min(100, (100 * tokens) / most)}%`;
  const told = `${short(total)} of ${short(limit)} tokens, ${percent(total / limit)}`;
  return html`<div class=${slim ? "gauge slim" : "gauge"} role="img" aria-label=${told}>
    <div class="gauge-fill">
      ${sharesIn([fill]).map(
        (share) => html`<span key=${share.name} class=${`share share-${share.name}`} style=${{ width: at(fill[share.name]) }} title=${`${share.label}: ${whole(fill[share.name])} tokens`}></span>`,
      )}
    </div>
    ${target !== null && html`<i class="gauge-line target" style=${{ left: at(target) }} title=${`target: ${whole(target)} tokens`}></i>`}
    ${trigger !== null && html`<i class="gauge-line trigger" style=${{ left: at(trigger) }} title=${`compacts above ${whole(trigger)} tokens`}></i>`}
  </div>`;
}

/** A page of text that grows on demand. @param {{ text: string, more?: any, class?: string }} props */
export function Text({ text, more = null, class: name = "" }) {
  return html`<div class=${`text ${name}`}><pre tabindex="0" role="region" aria-label="Text">${text}</pre>${more}</div>`;
}
