// Where the page reads from. A source has one method, `get(path, given, stop)`, and what it answers is the JSON of the
// `/v1` API; the exported file has a source of its own over what it carries along.

import { segmentOf } from "../pure/address.js";
import { signal } from "./page.js";

/**
 * @typedef {Record<string, string | number | boolean | null | undefined>} Given
 * @typedef {object} Source
 * @property {(path: string, given?: Given, stop?: AbortSignal) => Promise<any>} get
 * @property {(path: string, decision: Record<string, any>) => Promise<any>} [decide] takes a decision, or tries it
 * @property {boolean} [moment] whether it has one version alone, without the log that led there
 * @property {boolean} live whether the log may grow while it is looked at
 */

/** Why an answer did not come. `status` is 0 where nobody answered. */
export class SourceError extends Error {
  /** @param {number} status @param {string} kind @param {string} message */
  constructor(status, kind, message) {
    super(message);
    this.name = "SourceError";
    this.status = status;
    this.kind = kind;
  }
}

/** How the server is: it answers, nobody does, or it knows this page no more. While it is away what is seen stays. */
export const server = signal(/** @type {"there" | "away" | "refused"} */ ("there"));

/** Counts the returns of the server, so that what failed meanwhile is asked for again. */
export const returns = signal(0);

/** Write what is asked. A name with `_` in front is not sent: it makes the same question a new one. @param {Given} given */
function queryOf(given) {
  const kept = Object.entries(given).filter(([name, value]) => !name.startsWith("_") && value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return query && `?${query}`;
}

/** Read an answer that is no success: the API says a type and details, a proxy between may say anything. @param {Response} answer */
async function refusal(answer) {
  const text = await answer.text();
  if (!(answer.headers.get("content-type") ?? "").includes("json")) return new SourceError(answer.status, "", text.slice(0, 300) || `The server answered ${answer.status} without a word.`);
  const said = JSON.parse(text);
  return new SourceError(answer.status, said.type ?? "", said.detail ?? `The server answered ${answer.status}.`);
}

/** @implements {Source} */
export class HttpSource {
  /** @param {string} base where the API is, relative to the page */
  constructor(base) {
    this.base = base;
    this.live = true;
    this.waiting = false;
  }

  /** @param {string} path @param {Given} [given] @param {AbortSignal} [stop] @returns {Promise<any>} */
  async get(path, given = {}, stop = undefined) {
    let answer;
    try {
      answer = await fetch(this.base + path + queryOf(given), { signal: stop, credentials: "same-origin", headers: { Accept: "application/json" } });
    } catch (problem) {
      if (stop?.aborted) throw problem;
      this._lost();
      throw new SourceError(0, "unreachable", "The server does not answer.");
    }
    if (answer.status === 401 || answer.status === 403) server.value = "refused";
    else if (!this.waiting) server.value = "there";
    if (!answer.ok) throw await refusal(answer);
    return answer.json();
  }

  /** A header that a page of another origin cannot send says that it is meant. @param {string} path @param {Record<string, any>} decision @returns {Promise<any>} */
  async decide(path, decision) {
    let answer;
    try {
      const headers = { Accept: "application/json", "Content-Type": "application/json", "X-Timeline-Decision": "1" };
      answer = await fetch(this.base + path, { method: "POST", credentials: "same-origin", headers, body: JSON.stringify(decision) });
    } catch {
      this._lost();
      throw new SourceError(0, "unreachable", "The server does not answer, so that it is not known whether it was done. Look at the log when it is back.");
    }
    if (!answer.ok) throw await refusal(answer);
    return answer.json();
  }

  /** Ask again and again until somebody answers. */
  _lost() {
    server.value = "away";
    if (this.waiting) return;
    this.waiting = true;
    let pause = 500;
    const ask = async () => {
      try {
        await fetch(`${this.base}conversations?limit=1`, { credentials: "same-origin" });
      } catch {
        pause = Math.min(5000, pause * 1.5); // still nobody there
        setTimeout(ask, pause);
        return;
      }
      this.waiting = false;
      server.value = "there";
      returns.value += 1;
    };
    setTimeout(ask, pause);
  }
}

/** The source in use; the page's first script sets it. @type {{ now: Source }} */
export const source = { now: new HttpSource("v1/") };

/** The path of a conversation, and of what belongs to it. @param {string} conversation @param {string} rest */
export function pathOf(conversation, rest = "") {
  return `conversations/${segmentOf(conversation)}${rest && "/" + rest}`;
}
