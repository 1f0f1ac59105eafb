// <tl-compaction-guard>: what is in it cannot be sent while a compaction runs. It disables the buttons that send, refuses
// to submit, says so, and emits `compacting` with whether one runs.

import { LiveElement, make, sheet } from "./element.js";
import { isCompacting } from "./state.js";

const CSS = sheet(`.wait{font-size:12.5px;color:var(--tl-faint);min-height:1.45em}`);

export class CompactionGuard extends LiveElement {
  constructor() {
    super(CSS);
    this._wait = make("div", { class: "wait", part: "wait", role: "status" });
    this._root.append(make("slot"), this._wait);
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._later = undefined;
    this._runs = false;
    this.addEventListener("submit", (event) => this._refuse(event), { capture: true });
    this.addEventListener("keydown", (event) => this._refuseKey(event), { capture: true });
  }

  disconnectedCallback() {
    clearTimeout(this._later);
    super.disconnectedCallback();
  }

  /** Whether a compaction runs. */
  get compacting() {
    return this._runs;
  }

  draw() {
    const runs = isCompacting(this.state);
    clearTimeout(this._later);
    if (runs) this._later = setTimeout(() => this._changed(), Math.min(Math.max(0, (this.state.until ?? 0) - Date.now()) + 50, 2 ** 31 - 1));
    if (runs === this._runs) return;
    this._runs = runs;
    this.toggleAttribute("compacting", runs);
    this.setAttribute("aria-busy", String(runs));
    this._wait.textContent = runs ? "The conversation is being optimized, please wait." : "";
    for (const button of this.querySelectorAll("button[type=submit], button:not([type]), [data-tl-send]")) this._set(button, runs);
    this.say("compacting", runs);
  }

  /** Disable a button, and enable it again if nobody else disabled it. @param {Element} button @param {boolean} runs */
  _set(button, runs) {
    if (runs && !button.hasAttribute("disabled")) {
      button.setAttribute("disabled", "");
      button.setAttribute("data-tl-disabled", "");
    } else if (!runs && button.hasAttribute("data-tl-disabled")) {
      button.removeAttribute("disabled");
      button.removeAttribute("data-tl-disabled");
    }
  }

  /** @param {Event} event */
  _refuse(event) {
    if (!this._runs) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  /** Enter in a text field sends on most chat pages. @param {KeyboardEvent} event */
  _refuseKey(event) {
    const writes = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
    if (writes && event.key === "Enter" && !event.shiftKey && !event.isComposing) this._refuse(event);
  }
}
