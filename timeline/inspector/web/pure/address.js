// The address of what is seen: all state of the page is in the part behind the `#`, so that each sight can be linked to.

/**
 * @typedef {object} Address
 * @property {string} conversation the conversation's id; empty for the list of all
 * @property {string} view the tab of a conversation, or `search` without one
 * @property {Record<string, string>} given the rest: `at`, `call`, `block`, `query` …
 */

export const VIEWS = ["log", "context", "compactions", "diff", "family", "cache", "what-if", "lab", "live", "export"];

/** Read an address; what is no view of a conversation is its log. @param {string} hash @returns {Address} */
export function readAddress(hash) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const [place, id = "", view = ""] = path.split("/");
  /** @type {Record<string, string>} */
  const given = {};
  for (const [name, value] of new URLSearchParams(query)) given[name] = value;
  if (place === "c" && id) return { conversation: decoded(id), view: VIEWS.includes(view) ? view : "log", given };
  return { conversation: "", view: place === "search" ? "search" : "", given };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a hand-written percent sign
  }
}

/** Write an address; empty values are left out. @param {Address} address */
export function writeAddress({ conversation, view, given }) {
  const path = conversation ? `/c/${encodeURIComponent(conversation)}${view && view !== "log" ? "/" + view : ""}` : view ? `/${view}` : "/";
  const kept = Object.entries(given).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const query = new URLSearchParams(kept).toString();
  return `#${path}${query ? "?" + query : ""}`;
}

/**
 * Return an address with some values changed; one that is null goes.
 * @param {Address} address @param {Record<string, string | number | null | undefined>} changes
 * @returns {Address}
 */
export function changed(address, changes) {
  const given = { ...address.given };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") delete given[name];
    else given[name] = String(value);
  }
  return { ...address, given };
}

/** An id as a segment of a path. Browsers take one or two dots for a folder: they are an empty segment and their number. @param {string} id */
export function segmentOf(id) {
  return /^\.\.?$/.test(id) ? `/${id.length}` : encodeURIComponent(id);
}

/** The segments of a path, each decoded by who needs it, with an id of dots in one of them again. @param {string} path */
export function segmentsOf(path) {
  return path.replace(/^conversations\/\/([12])(?=\/|$)/, (_, dots) => `conversations/${".".repeat(Number(dots))}`).split("/");
}
