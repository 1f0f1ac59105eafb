// The rows of a log, read in pages as they are scrolled to. A row is a version: row 0 is version 1.

import { Recent, pagesOf } from "../pure/pages.js";
import { pathOf, source } from "./source.js";

export const PAGE = 100;

/** The rows of one conversation. @typedef {Map<number, any>} Page rows by version */

export class Rows {
  /** @param {string} conversation @param {() => void} changed called when pages came @param {number} most pages that are kept */
  constructor(conversation, changed, most = 60) {
    this.conversation = conversation;
    this.changed = changed;
    /** Pages by number and the version of their states. @type {Recent<string, Page>} */
    this.pages = new Recent(most);
    /** Pages as they were last seen, with states of another version. @type {Recent<number, Page>} */
    this.before = new Recent(most);
    /** @type {Map<string, AbortController>} */
    this.asked = new Map();
    /** @type {any} */
    this.error = null;
    /** What is known of each turn: its id, and where it begins. @type {Recent<string, { id: string, version: number, text: string }>} */
    this.turns = new Recent(2000);
    this.at = 0;
    this.version = 0;
  }

  /** Show states at another version, of a log that may have grown. @param {number} at @param {number} version */
  move(at, version) {
    if (version !== this.version) {
      // The last page has more rows now, and any row may have changed its state.
      this.pages.clear();
    }
    this.at = at;
    this.version = version;
  }

  /** @param {number} version @returns {any} the row; null where there is none, undefined while it is not known */
  row(version) {
    const number = Math.floor((version - 1) / PAGE);
    const page = this.pages.get(this._key(number));
    // A page that was read before knows nothing of rows that came since.
    return page ? (page.get(version) ?? null) : this.before.get(number)?.get(version);
  }

  /** What a page is kept under: the states of rows behind the version looked at do not depend on it. @param {number} number */
  _key(number) {
    return number * PAGE >= this.at ? `${number}@later` : `${number}@${this.at}`;
  }

  /** Read the pages that hold some rows, and give up those asked for that do not. @param {number[]} rows */
  want(rows) {
    const numbers = rows.length ? [...new Set(rows.flatMap((row) => pagesOf(row, row + 1, PAGE)))] : [];
    const keys = new Set(numbers.map((number) => this._key(number)));
    for (const [key, stop] of this.asked) {
      if (!keys.has(key)) {
        stop.abort();
        this.asked.delete(key);
      }
    }
    for (const number of numbers) {
      const key = this._key(number);
      if (!this.pages.get(key) && !this.asked.has(key)) this._read(number, key);
    }
  }

  /** @param {number} number @param {string} key */
  async _read(number, key) {
    const stop = new AbortController();
    this.asked.set(key, stop);
    const first = number * PAGE;
    const until = first + PAGE;
    const { at, version } = this;
    const ask = (/** @type {number} */ after, /** @type {number} */ last, /** @type {number | null} */ then) =>
      source.now.get(pathOf(this.conversation, "blocks"), { after, until: last, at: then, limit: PAGE, _seen: version }, stop.signal);
    try {
      // An answer about a version has no row behind it, so those are asked for as they are now.
      const asked = [];
      if (first < at) asked.push(ask(first, Math.min(until, at), at === version ? null : at));
      if (until > at && at < version) asked.push(ask(Math.max(first, at), until, null));
      const rows = (await Promise.all(asked)).flatMap((found) => found.rows);
      if (stop.signal.aborted) return;
      const page = new Map(rows.map((/** @type {any} */ row) => [row.version, row]));
      // The log grew meanwhile: it is shown until it was read again.
      if (version === this.version) this.pages.set(key, page);
      this.before.set(number, page);
      for (const row of rows) this._learn(row);
      this.error = null;
    } catch (problem) {
      if (stop.signal.aborted) return;
      this.error = problem;
    } finally {
      if (this.asked.get(key) === stop) this.asked.delete(key);
    }
    this.changed();
  }

  /** @param {any} row */
  _learn(row) {
    if (!row.turn_id) return;
    const known = this.turns.get(row.turn_id);
    if (!known || row.version < known.version) this.turns.set(row.turn_id, { id: row.turn_id, version: row.version, text: row.type === "user.prompt" ? row.text : "" });
  }

  stop() {
    for (const stop of this.asked.values()) stop.abort();
    this.asked.clear();
  }
}

/** The beginning of a block's text; of a call its arguments in one line, since its tool is named beside. @param {any} found @returns {string} */
export function preview(found) {
  if (!found) return "";
  if (found.type !== "react.tool.call" || !found.tool || !found.text.startsWith(found.tool)) return found.text;
  return found.text.slice(found.tool.length).replace(/\s+/g, " ").trim();
}
