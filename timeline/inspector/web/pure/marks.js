// Where a text holds what was searched for.

/**
 * @typedef {{ text: string, hit: boolean }} Piece
 */

/**
 * Cut a text into pieces that are a hit and pieces that are none. Case is ignored where lower case has the same length.
 * @param {string} text @param {string} query @returns {Piece[]}
 */
export function pieces(text, query) {
  const wanted = query.toLowerCase();
  const lower = text.toLowerCase();
  const [within, looked] = lower.length === text.length ? [lower, wanted] : [text, query];
  if (!looked) return text ? [{ text, hit: false }] : [];
  const found = [];
  let from = 0;
  for (let at = within.indexOf(looked); at >= 0; at = within.indexOf(looked, from)) {
    if (at > from) found.push({ text: text.slice(from, at), hit: false });
    found.push({ text: text.slice(at, at + looked.length), hit: true });
    from = at + looked.length;
  }
  if (from < text.length) found.push({ text: text.slice(from), hit: false });
  return found;
}

/**
 * Cut a snippet at the marks that the search sets, « and ». Texts have such signs of their own, as quotes: between marks
 * is a word that was searched for.
 * @param {string} snippet @param {string} query @returns {Piece[]}
 */
export function marked(snippet, query) {
  const words = folded(query).match(/[\p{L}\p{N}]+/gu) ?? [];
  const isHit = (/** @type {string} */ text) => text === text.trim() && words.some((word) => folded(text).includes(word));
  /** @type {Piece[]} */
  const found = [];
  for (const text of snippet.split(/(«[^«»]*»)/)) {
    const inner = text.slice(1, -1);
    const hit = text.startsWith("«") && text.endsWith("»") && isHit(inner);
    const last = found[found.length - 1];
    if (hit) found.push({ text: inner, hit });
    else if (last && !last.hit) last.text += text;
    else if (text) found.push({ text, hit });
  }
  return found;
}

/** @param {string} text */
function folded(text) {
  return text.toLowerCase().replaceAll("ß", "ss");
}
