// Replays beside each other: which policies an address names, and the lines of their calls.

/** The policies of an address, each once, the last ones of too many. @param {string | undefined} named @param {number} most */
export function policiesOf(named, most) {
  return [...new Set((named ?? "").split(",").map((name) => name.trim()).filter(Boolean))].slice(-most);
}

/**
 * The paths of several lines over one scale, as steps; of more calls than there is room for the highest ones stand.
 * @param {{ number: number, tokens: number }[][]} lines @param {number} width @param {number} height
 */
export function linesOf(lines, width, height) {
  const most = Math.max(1, ...lines.flat().map((call) => call.tokens));
  const last = Math.max(2, ...lines.flat().map((call) => call.number));
  const across = (/** @type {number} */ n) => Math.round((10 * width * (n - 1)) / (last - 1)) / 10;
  const up = (/** @type {number} */ tokens) => Math.round(10 * (2 + height - (height * tokens) / most)) / 10;
  const paths = lines.map((calls) => {
    /** @type {Map<number, number>} */
    const columns = new Map();
    for (const call of calls) {
      const x = across(call.number);
      columns.set(x, Math.max(columns.get(x) ?? 0, call.tokens));
    }
    const places = [...columns].sort(([one], [other]) => one - other);
    return places.map(([x, tokens], place) => (place ? `H${x}V${up(tokens)}` : `M${x} ${up(tokens)}`)).join("");
  });
  return { most, paths };
}
