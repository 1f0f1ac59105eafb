// <tl-compaction-error>: what went wrong, and what can be done. It emits `retry`, `new-session` and `dismiss`.

import { LiveElement, make, sheet } from "./element.js";
import { figure } from "./words.js";

const CSS = sheet(`
.banner{display:flex;flex-wrap:wrap;align-items:center;gap:8px;padding:8px 12px;background:var(--tl-red-50);border-bottom:1px solid var(--tl-red-200);color:var(--tl-red-700)}
.text{flex:1 1 12em;min-width:0;overflow-wrap:anywhere}
`);

export class CompactionError extends LiveElement {
  constructor() {
    super(CSS);
    this._region = make("div", { role: "alert" });
    this._root.append(this._region);
    /** @type {unknown} */
    this._dismissed = null;
    /** @type {unknown} */
    this._drawn = null;
  }

  /** The problem that is shown, or null. */
  get problem() {
    const { error, overflow } = this.state;
    const problem = error ?? overflow;
    return problem && keyOf(problem) !== this._dismissed ? problem : null;
  }

  draw() {
    const { problem } = this;
    const key = problem && `${keyOf(problem)} ${this.state.overflow !== null}`;
    if (key === this._drawn) return; // a button that has the focus keeps it
    this._drawn = key;
    this._region.replaceChildren(...(problem ? [this._banner(problem)] : []));
  }

  /** @param {import("./state.js").LiveEvent} problem */
  _banner(problem) {
    const text =
      problem.type === "context-overflow"
        ? `The conversation is too long for the model: ${figure(problem.currentTokens)} of ${figure(problem.limit)} tokens.`
        : problem.error;
    const suggests = problem.suggestNewSession || this.state.overflow !== null;
    /** @param {string} name */
    const says = (name) => () => this.say(name, problem);
    return make(
      "div",
      { class: "banner", part: "banner" },
      make("span", { "aria-hidden": "true" }, "▲"),
      make("span", { class: "text", part: "text" }, text),
      suggests && make("button", { type: "button", click: says("new-session") }, "Start New Session"),
      Boolean(problem.canRetry) && make("button", { type: "button", click: says("retry") }, "Retry"),
      make("button", { type: "button", class: "plain", "aria-label": "Dismiss", click: () => this.dismiss() }, "✕"),
    );
  }

  /** Take the banner away until something else goes wrong. */
  dismiss() {
    const { problem } = this;
    if (problem === null || !this.say("dismiss", problem)) return;
    this._dismissed = keyOf(problem);
    this.draw();
  }
}

/** @param {import("./state.js").LiveEvent} problem */
function keyOf(problem) {
  return `${problem.conversation} ${problem.version} ${problem.type} ${problem.error ?? ""}`;
}
