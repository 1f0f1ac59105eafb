// Answers of the source as a component sees them: loading, there, or failed; and how each of these looks.

import { html, useEffect, useRef, useState, useValue } from "./page.js";
import { returns, source } from "./source.js";

/** @typedef {import("./source.js").SourceError} SourceError */
/** @typedef {import("./source.js").Given} Given */

/**
 * @template T
 * @typedef {{ data: T | null, error: any, loading: boolean }} Loaded
 */

/**
 * Ask the source, and again when what is asked for changes. The answer before stays until the next one is there, so that
 * nothing jumps; `own` names what it must belong to: with another one it is thrown away at once.
 * @param {string | null} path null asks for nothing @param {Given} given @param {string} own @param {number} pause milliseconds to wait for a further change
 * @returns {Loaded<any>}
 */
export function useLoaded(path, given = {}, own = path ?? "", pause = 0) {
  const again = useValue(returns);
  const wanted = path === null ? "" : `${path} ${JSON.stringify(given)}`;
  const [answer, setAnswer] = useState({ own: "", wanted: "", data: /** @type {any} */ (null), error: /** @type {any} */ (null) });
  const kept = useRef(answer);
  kept.current = answer;
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    const ask = () =>
      source.now.get(path, given, stop.signal).then(
        (data) => stop.signal.aborted || setAnswer({ own, wanted, data, error: null }),
        (error) => {
          if (stop.signal.aborted) return;
          // A server that is away does not make what is seen untrue.
          const before = kept.current;
          if (isAway(error) && before.own === own && before.data !== null) return;
          setAnswer({ own, wanted, data: null, error });
        },
      );
    const timer = pause ? setTimeout(ask, pause) : (ask(), 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [wanted, own, again]);
  const mine = path !== null && answer.own === own;
  return { data: mine ? answer.data : null, error: mine && answer.wanted === wanted ? answer.error : null, loading: path !== null && answer.wanted !== wanted };
}

/** Whether an error says something of the connection, and nothing of what was asked. @param {any} error */
function isAway(error) {
  return [0, 401, 403].includes(error?.status);
}

/** What stands where an answer will be. @param {{ of: string, lines?: number }} props */
export function Loading({ of, lines = 4 }) {
  return html`<div class="loading" role="status">
    <span class="unseen">${of} is loading.</span>
    ${Array.from({ length: lines }, (_, line) => html`<i key=${line} style=${{ width: `${92 - ((line * 37) % 45)}%` }}></i>`)}
  </div>`;
}

/** @param {{ title: string, children?: any }} props */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

/** Statuses of a store that is locked, or whose server is away: it is asked again by itself, after so many milliseconds. */
const PASSING = [423, 503];
const AGAIN = 5000;

/** What went wrong, and what to do. @param {{ error: any, of: string }} props */
export function Failed({ error, of }) {
  const [title, advice] = inWords(error, of);
  useEffect(() => {
    if (!PASSING.includes(error?.status)) return undefined;
    const timer = setTimeout(() => (returns.value += 1), AGAIN);
    return () => clearTimeout(timer);
  }, [error]);
  return html`<div class="empty failed" role="alert">
    <p class="empty-title">${title}</p>
    <p>${advice}</p>
    <button onClick=${() => (returns.value += 1)}>Ask again</button>
  </div>`;
}

/** What a recording does not hold: nothing failed, and nothing can be asked for again. @param {{ error: any }} props */
function Unrecorded({ error }) {
  return html`<${Empty} title="The request of this call was not recorded"><p>${error.message}</p><p>The log, its states and its figures are here all the same.</p><//>`;
}

/** @param {any} error @param {string} of @returns {[string, string]} */
function inWords(error, of) {
  const said = String(error?.message ?? error);
  if (error?.status === 0) return ["The server does not answer", `${of} will be loaded as soon as it is back. If it was stopped, run timeline inspect again.`];
  if (error?.status === 401 || error?.status === 403) return ["This page has no access any more", "Its token is from an earlier start. Open the address that timeline inspect prints."];
  if (error?.kind === "conversation-erased") return ["This conversation was erased", said];
  if (error?.status === 404) return [`${of} is not there`, said];
  if (error?.status === 410) return [`${of} is gone`, said];
  if (PASSING.includes(error?.status)) return [`${of} cannot be read now`, `${said} It is asked for again every few seconds.`];
  if (error?.status >= 500) return [`${of} could not be read`, said];
  return [`${of} could not be shown`, said];
}

/**
 * Draw an answer, or what stands for it.
 * @param {{ answer: Loaded<any>, of: string, lines?: number, children: (data: any) => any }} props
 */
export function Shown({ answer, of, lines, children }) {
  if (answer.error?.kind === "call-unavailable") return html`<${Unrecorded} error=${answer.error} />`;
  if (answer.error) return html`<${Failed} error=${answer.error} of=${of} />`;
  if (answer.data === null) return html`<${Loading} of=${of} lines=${lines} />`;
  return html`<div class=${answer.loading ? "shown stale" : "shown"} aria-busy=${answer.loading}>${children(answer.data)}</div>`;
}
