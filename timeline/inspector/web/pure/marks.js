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

/** Cut a snippet at the marks that the search sets, « and ». @param {string} snippet @returns {Piece[]} */
export function marked(snippet) {
  return snippet
    .split(/[«»]/)
    .map((text, place) => ({ text, hit: place % 2 === 1 }))
    .filter((piece) => piece.text);
}
