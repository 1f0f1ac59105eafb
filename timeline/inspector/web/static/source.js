// The source of an exported file: it answers what the API would, from what the file carries, and says what it does not.

import { SourceError } from "../parts/source.js";
import { segmentsOf } from "../pure/address.js";
import { chunk } from "./chunks.js";
import { rowAt, stateAt } from "./histories.js";

/** @typedef {import("../parts/source.js").Given} Given @typedef {import("../parts/source.js").Source} Source */

const WHY_NOT = /** @type {Record<string, string>} */ ({
  why: "Why a block is shown as it is was not exported: `timeline why` says it.",
  diff: "Differences between contexts were not exported: `timeline diff` shows them.",
  "what-if": "Other policies were not tried: `timeline simulate` does that.",
  body: "The bytes of requests were not exported: `timeline call --body` has them.",
});
const PIECE = 65_536;

/** @implements {Source} */
export class StaticSource {
  /** @param {any} index what the file carries: its answers, and where the chunks begin */
  constructor(index) {
    this.live = false;
    this.moment = Boolean(index.moment);
    this.index = index;
  }

  /** @param {string} path @param {Given} [given] @returns {Promise<any>} */
  async get(path, given = {}) {
    const [root, id, ...rest] = segmentsOf(path);
    if (root === "search") return this._search(String(given.query ?? ""), Number(given.limit ?? 20));
    if (root !== "conversations") throw leftOut("This was not exported.");
    if (id === undefined) return this._conversations(String(given.query ?? ""));
    if (decodeURIComponent(id) !== this.index.conversation) throw leftOut("Another conversation was not exported.");
    const [what = "", name, part] = rest;
    if (what === "blocks") return name === undefined ? this._rows(given) : this._block(decodeURIComponent(name), given);
    if (what === "state") return this._state(given.at);
    if (what === "calls" && name !== undefined) return this._call(Number(name), part ?? "call");
    if (what === "calls") return this._calls(given);
    if (what === "chart") return after(this.index.answers.chart, "points", Number(given.after ?? 0));
    const found = this.index.answers[rest.join("/")];
    if (found === undefined) throw leftOut(WHY_NOT[what] ?? "This was not exported.");
    return found;
  }

  /** @param {string} query */
  _conversations(query) {
    const { conversations } = this.index.answers;
    const folded = query.toLowerCase();
    const rows = conversations.conversations.filter((/** @type {any} */ row) => `${row.id} ${row.title}`.toLowerCase().includes(folded));
    return { ...conversations, conversations: rows, total: rows.length };
  }

  /** The rows from one version on, chunk by chunk. @param {number} first */
  async *_from(first) {
    const { chunks } = this.index;
    for (const [number, begins] of chunks.entries()) {
      if ((chunks[number + 1] ?? Infinity) <= first) continue;
      for (const row of await chunk(`rows-${number}`)) if (row.version >= first) yield row;
    }
  }

  /** @param {Given} given */
  async _rows(given) {
    const { version, first } = this.index;
    const at = Number(given.at ?? version);
    const until = Math.min(at, Number(given.until ?? at));
    const limit = Number(given.limit ?? 200);
    const rows = [];
    let next = null;
    for await (const row of this._from(Number(given.after ?? 0) + 1)) {
      if (row.version > until) break;
      if (rows.length === limit) {
        next = rows[rows.length - 1].version;
        break;
      }
      rows.push(this._at(row, at));
    }
    return { conversation: this.index.conversation, at_version: at, version, first_version: first, rows, next_after: next };
  }

  /** @param {any} row @param {number} at */
  _at(row, at) {
    return rowAt(row, this.index.histories[row.version], this.index.superseded, at);
  }

  /** @param {unknown} wanted */
  async _state(wanted) {
    const { answers, version } = this.index;
    const at = Number(wanted ?? version);
    if (at === version) return answers.state;
    const rows = [];
    for await (const row of this._from(1)) {
      if (row.version > at) break;
      rows.push(this._at(row, at));
    }
    return stateAt(rows, answers.state, at);
  }

  /** @param {string} name a path or an address @param {Given} given */
  async _block(name, given) {
    const version = /@(\d+)$/.test(name) ? Number(name.slice(name.lastIndexOf("@") + 1)) : this.index.paths[name];
    const number = this.index.chunks.findLastIndex((/** @type {number} */ begins) => begins <= version);
    const found = number < 0 ? undefined : (await chunk(`texts-${number}`))[version];
    if (found === undefined) throw leftOut("The text of this block was not exported.");
    const offset = Number(given.offset ?? 0);
    const limit = Number(given.limit ?? PIECE);
    const end = Math.min(found.text.length, offset + limit);
    return { ...found, text: found.text.slice(offset, end), offset, characters: found.text.length, next_offset: end < found.text.length ? end : null };
  }

  /** @param {Given} given */
  _calls(given) {
    const { calls } = this.index.answers;
    const first = Number(given.after ?? 0);
    const limit = Number(given.limit ?? 1000);
    const from = calls.calls.findIndex((/** @type {any} */ call) => call.number > first);
    if (from < 0) return { ...calls, calls: [], costs: [], cache: [], next_after: null };
    const shown = calls.calls.slice(from, from + limit);
    const next = from + limit < calls.calls.length ? shown.at(-1).number : null;
    return { ...calls, calls: shown, costs: calls.costs.slice(from, from + limit), cache: calls.cache.slice(from, from + limit), next_after: next };
  }

  /** @param {number} n @param {string} part */
  async _call(n, part) {
    if (part === "body") throw leftOut(WHY_NOT.body);
    if (!this.index.contexts.includes(n)) throw leftOut(`What was sent at call ${n} was not exported: --contexts all has it, or \`timeline call\`.`);
    return whole((await chunk(`context-${n}`))[part]);
  }

  /** Find rows by their words, as far as their texts are here. @param {string} query @param {number} limit */
  async _search(query, limit) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const { compactions } = this.index.answers.compactions;
    const found = [];
    for (const number of this.index.chunks.keys()) {
      for (const text of Object.values(await chunk(`texts-${number}`))) {
        const folded = text.text.toLowerCase();
        if (words.length === 0 || !words.every((word) => folded.includes(word))) continue;
        if (found.length === limit) return { found, more: true };
        const place = Math.max(0, folded.indexOf(words[0]) - 60);
        const { conversation, version, at, type, path, address } = text;
        found.push({ conversation, version, at, type, path, address, snippet: text.text.slice(place, place + 160), rank: 1, call: null, reverted_by: undone(compactions, version) });
      }
    }
    return { found, more: false };
  }
}

/** The version that undid a compaction; null where it is in force, or is none. @param {any[]} compactions @param {number} version */
function undone(compactions, version) {
  return compactions.find((one) => one.version === version)?.reverted_by ?? null;
}

/** @param {string} message */
function leftOut(message) {
  return new SourceError(404, "left_out", message);
}

/** @param {any} answer @param {string} list @param {number} first */
function after(answer, list, first) {
  return { ...answer, [list]: answer[list].filter((/** @type {any} */ one) => one.number > first), next_after: null };
}

/** Put what several contexts share back in its places. @param {any} value @returns {Promise<any>} */
async function whole(value) {
  if (Array.isArray(value)) return Promise.all(value.map(whole));
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value.$)) {
    return Promise.all(value.$.map(async (/** @type {number} */ place) => (await chunk(`pool-${Math.floor(place / 500)}`))[place % 500]));
  }
  const entries = await Promise.all(Object.entries(value).map(async ([name, one]) => [name, await whole(one)]));
  return Object.fromEntries(entries);
}
