// <tl-context-debug>: all events of the stream but usage, with their details and durations. `after="0"` begins with the
// whole log; else it begins with the present.

import { LiveElement, make, sheet } from "./element.js";
import { KINDS, duration, figure, line, saved } from "./words.js";

/** @typedef {import("./state.js").Entry} Entry */

const CSS = sheet(`
.title{margin:0 0 8px;font-size:12.5px;font-weight:500;color:var(--tl-faint)}
ol{list-style:none;margin:0;padding:0;display:grid;gap:4px}
li{font-size:12.5px;padding:6px 8px;border-radius:6px;background:var(--tl-yellow-50);overflow-wrap:anywhere}
li.good{background:var(--tl-green-50)}li.bad{background:var(--tl-red-50)}
.row{display:flex;flex-wrap:wrap;gap:4px 8px;align-items:baseline}
.kind{padding:1px 6px;border-radius:4px;color:var(--tl-on-tone);white-space:nowrap}
.yellow-500{background:var(--tl-yellow-500)}.yellow-400{background:var(--tl-yellow-400)}.yellow-300{background:var(--tl-yellow-300)}
.green-500{background:var(--tl-green-500)}.kind.red-500{background:var(--tl-red-500)}.kind.red-600{background:var(--tl-red-600);color:#fff}
.time{margin-left:auto;color:var(--tl-faint)}
.more{margin-top:4px;display:flex;flex-wrap:wrap;gap:2px 16px;color:var(--tl-faint)}
`);
const TOUCHED = { "compaction-complete": "good", "compaction-error": "bad", "context-overflow": "bad" };

export class ContextDebug extends LiveElement {
  constructor() {
    super(CSS);
    this._list = make("ol", { part: "list" });
    this._root.append(make("section", { "aria-label": "Context Management" }, make("div", { class: "title", role: "heading", "aria-level": "2" }, "Context Management"), this._list));
    /** @type {Map<number, { row: HTMLElement, entry: Entry }>} */
    this._rows = new Map();
    /** @type {Entry[] | null} */
    this._drawn = null;
  }

  draw() {
    const { entries } = this.state;
    if (entries === this._drawn) return; // most events are of usage
    this._drawn = entries;
    this.hidden = entries.length === 0;
    const kept = new Set(entries);
    for (const [key, { row, entry }] of this._rows) {
      if (kept.has(entry)) continue;
      row.remove();
      this._rows.delete(key);
    }
    let before = null;
    for (const entry of entries.toReversed()) {
      const row = this._rows.get(entry.key)?.row ?? this._row(entry);
      if (row.nextSibling !== before || row.parentNode === null) this._list.insertBefore(row, before);
      before = row;
    }
  }

  /** @param {Entry} entry */
  _row(entry) {
    const { event } = entry;
    const kind = KINDS[event.type] ?? { label: event.type, tone: "", sign: "·" };
    const touched = TOUCHED[/** @type {keyof typeof TOUCHED} */ (event.type)] ?? "";
    const row = make(
      "li",
      { class: touched, "data-type": event.type },
      make(
        "div",
        { class: "row" },
        make("span", { class: `kind ${kind.tone}`, part: "kind" }, make("span", { "aria-hidden": "true" }, `${kind.sign} `), kind.label),
        make("span", {}, line(event)),
        entry.duration !== null && make("span", { class: "time figures" }, duration(entry.duration)),
      ),
      details(event),
    );
    this._rows.set(entry.key, { row, entry });
    return row;
  }
}

/** @param {import("./state.js").LiveEvent} event */
function details(event) {
  if (event.type === "compaction-complete") {
    const texts = [`Before: ${figure(event.tokensBefore)} tokens`, `After: ${figure(event.tokensAfter)} tokens`, `Saved: ${saved(event)}%`];
    return make("div", { class: "more figures" }, ...texts.map((text) => make("span", {}, text)));
  }
  if (event.type === "compaction-prune") {
    return make("div", { class: "more figures" }, `Pruned ${figure(event.outputsPruned)} tool ${event.outputsPruned === 1 ? "output" : "outputs"} (${figure(event.tokensSaved)} tokens)`);
  }
  return null;
}
