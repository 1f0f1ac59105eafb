// <tl-compaction-indicator>: what a running compaction does, and how much it saved so far.

import { LiveElement, make, sheet } from "./element.js";
import { isCompacting } from "./state.js";

const CSS = sheet(`
.line{display:flex;align-items:center;gap:8px;padding:8px 12px;background:var(--tl-yellow-50);border-bottom:1px solid var(--tl-yellow-200);color:var(--tl-yellow-700)}
.line[hidden]{display:none}
.turning{width:14px;height:14px;border:2px solid currentColor;border-right-color:transparent;border-radius:50%;animation:turn .9s linear infinite}
.done{font-weight:600}
.saved{margin-left:auto;font-size:12.5px}
@keyframes turn{to{transform:rotate(1turn)}}
@media (prefers-reduced-motion:reduce){.turning{animation:none;border-style:dotted}}
`);
/** What was reached stays to be read for so many seconds; the attribute `linger` has another number. */
const LINGER = 4;
const TEXTS = { pruning: "Optimizing conversation…", summarizing: "Summarizing context…" };

export class CompactionIndicator extends LiveElement {
  constructor() {
    super(CSS);
    this._line = make("div", { class: "line", part: "line", hidden: true });
    // The live region stays while its content comes and goes, or screen readers miss the first one.
    this._root.append(make("div", { role: "status", "aria-live": "polite", "aria-atomic": "true" }, this._line));
    this._shown = "";
    /** @type {import("./state.js").LiveEvent | null | undefined} the newest one when it was drawn; undefined before */
    this._completed = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._later = undefined;
  }

  disconnectedCallback() {
    clearTimeout(this._later);
    super.disconnectedCallback();
  }

  draw() {
    const { state } = this;
    const runs = isCompacting(state);
    const ended = this.hasAttribute("compacting") && state.phase === "complete";
    const percent = state.percentSaved === null ? "" : `${Math.round(state.percentSaved)}% reduced`;
    if (runs) {
      this._show(TEXTS[/** @type {"pruning" | "summarizing"} */ (state.phase)], percent, false);
      this._draws(Math.max(0, (state.until ?? 0) - Date.now()) + 50);
    } else if (ended || this._lingers(state)) {
      this._show("Conversation optimized", percent, true);
      this._draws(1000 * Number(this.getAttribute("linger") ?? LINGER));
    } else if (state.phase !== "complete" || this._later === undefined) {
      this._show("", "", false);
    }
    this.toggleAttribute("compacting", runs);
    this._completed = state.completed;
  }

  /** Draw again later, and nothing sooner. @param {number} milliseconds */
  _draws(milliseconds) {
    clearTimeout(this._later);
    this._later = setTimeout(() => {
      this._later = undefined;
      this.draw();
    }, Math.min(milliseconds, 2 ** 31 - 1));
  }

  /** Return whether a compaction was completed since it was drawn, without a time to be seen. @param {import("./state.js").State} state */
  _lingers(state) {
    return state.phase === "complete" && this._completed !== undefined && state.completed !== this._completed;
  }

  /** @param {string} text @param {string} percent @param {boolean} done */
  _show(text, percent, done) {
    if (this._shown === `${text} ${percent}`) return;
    this._shown = `${text} ${percent}`;
    this._line.hidden = text === "";
    const sign = done ? make("span", { class: "done", "aria-hidden": "true" }, "✓") : make("span", { class: "turning", "aria-hidden": "true" });
    const saved = percent && make("span", { class: "saved figures", part: "saved" }, percent);
    this._line.replaceChildren(...(text ? [sign, make("span", { part: "text" }, text), saved || ""] : []));
  }
}
