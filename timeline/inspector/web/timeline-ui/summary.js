// <tl-compaction-summary>: a compaction in the chat's history, as a card that opens. It shows the newest compaction of
// its feed, or the one that its property `event` is set to: the data of a `compaction-complete`.

import { LiveElement, make, sheet } from "./element.js";
import { counted, duration, figure, saved } from "./words.js";

const CSS = sheet(`
.card{margin:8px 0;padding:8px 12px;background:var(--tl-amber-50);border:1px solid var(--tl-amber-200);border-radius:8px;color:var(--tl-amber-700)}
.head{display:flex;width:100%;align-items:center;gap:8px;text-align:left;background:none;border:0;padding:2px 0;font-weight:500}
.short{margin-left:auto;font-size:12.5px;font-weight:400}
.text{margin:8px 0 0;white-space:pre-wrap;overflow-wrap:anywhere;color:var(--tl-amber-800);font:inherit}
dl{display:flex;flex-wrap:wrap;gap:2px 20px;margin:8px 0 0;font-size:12.5px}
dl div{display:flex;gap:6px}dt{font-weight:500}dd{margin:0}
`);

export class CompactionSummary extends LiveElement {
  constructor() {
    super(CSS);
    /** @type {import("./state.js").LiveEvent | null} */
    this._event = null;
    this._open = false;
    /** @type {unknown} */
    this._drawn = undefined;
  }

  static get observedAttributes() {
    return [...super.observedAttributes, "open"];
  }

  /** @param {string} [name] */
  attributeChangedCallback(name) {
    if (name !== "open") {
      super.attributeChangedCallback();
      return;
    }
    this._open = this.hasAttribute("open");
    this._drawn = undefined;
    if (this.isConnected) this.draw();
  }

  /** The compaction that it shows, whatever its feed does. */
  get event() {
    return this._event ?? this.state.completed;
  }

  set event(event) {
    this._event = event;
    this.draw();
  }

  draw() {
    const { event } = this;
    this.hidden = event === null;
    const key = event && `${event.conversation} ${event.version} ${this._open}`;
    if (event === null || key === this._drawn) return;
    this._drawn = key;
    const focused = this._root.activeElement !== null;
    const head = this._head(event);
    const body = make("div", { id: "body", hidden: !this._open }, ...(this._open ? this._body(event) : []));
    this._root.replaceChildren(make("section", { class: "card", part: "card", "aria-label": "Conversation Summarized" }, head, body));
    if (focused) head.focus();
  }

  /** @param {import("./state.js").LiveEvent} event */
  _head(event) {
    return make(
      "button",
      {
        type: "button",
        class: "head",
        part: "head",
        "aria-expanded": String(this._open),
        "aria-controls": "body",
        click: () => this.toggleAttribute("open"),
      },
      make("span", { "aria-hidden": "true" }, "✦"),
      make("span", {}, event.wasSummarized ? "Conversation Summarized" : "Conversation Pruned"),
      make("span", { class: "short figures" }, `${saved(event)}% saved`),
      make("span", { "aria-hidden": "true" }, this._open ? "▴" : "▾"),
    );
  }

  /** @param {import("./state.js").LiveEvent} event */
  _body(event) {
    const figures = [
      ["Before", `${figure(event.tokensBefore)} tokens`],
      ["After", `${figure(event.tokensAfter)} tokens`],
      ["Saved", `${saved(event)}%`],
    ];
    if (event.messagesCompacted) figures.push(["Replaced", counted(event.messagesCompacted, "message")]);
    if (event.duration !== null && event.duration !== undefined) figures.push(["Took", duration(event.duration)]);
    const rows = figures.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", { class: "figures" }, value)));
    return [make("div", { class: "text", part: "summary" }, event.summary ?? "Old outputs of tools were hidden; no summary was needed."), make("dl", {}, ...rows)];
  }
}
