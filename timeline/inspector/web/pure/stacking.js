// The geometry of the context chart: shares of the context stacked over versions, as paths.

/**
 * @typedef {{ version: number, fill: Record<string, number>, total: number, limit?: number | null }} Point
 * @typedef {{ name: string, path: string }} Area
 */

/** Shares in the tokens that the limit is in: the provider's, where a policy counts so. @param {Record<string, number>} shares @param {number} ratio */
export function scaled(shares, ratio) {
  return ratio === 1 ? shares : Object.fromEntries(Object.entries(shares).map(([name, tokens]) => [name, Math.round(tokens * ratio)]));
}

/** @param {Record<string, number>} shares */
export function summed(shares) {
  return Object.values(shares).reduce((sum, tokens) => sum + tokens, 0);
}

/**
 * Take the points for so many columns: the largest of each column stays, so that no peak is lost.
 * @template {{ version: number, total: number }} P
 * @param {P[]} points @param {number} first @param {number} last @param {number} columns
 * @returns {P[]}
 */
export function thinned(points, first, last, columns) {
  if (points.length <= columns) return points;
  const width = Math.max(1, last - first) / columns;
  /** @type {P[]} */
  const kept = [];
  let column = -1;
  for (const point of points) {
    const here = Math.min(columns - 1, Math.floor((point.version - first) / width));
    if (here !== column) kept.push(point);
    else if (point.total > kept[kept.length - 1].total) kept[kept.length - 1] = point;
    column = here;
  }
  return kept;
}

/**
 * Stack the parts of points into areas. A point holds until the next one: a context does not grow between two calls.
 * @param {Point[]} points @param {string[]} names from the bottom up
 * @param {(version: number) => number} across @param {(tokens: number) => number} up @param {number} end
 * @returns {Area[]}
 */
export function stacked(points, names, across, up, end) {
  const bottom = points.map(() => 0);
  /** @type {Area[]} */
  const areas = [];
  for (const name of names) {
    if (!points.some((point) => point.fill[name])) continue;
    const top = points.map((point, place) => bottom[place] + (point.fill[name] ?? 0));
    areas.push({ name, path: steps(points, bottom, top, across, up, end) });
    for (let place = 0; place < points.length; place += 1) bottom[place] = top[place];
  }
  return areas;
}

/**
 * @param {Point[]} points @param {number[]} bottom @param {number[]} top
 * @param {(version: number) => number} across @param {(tokens: number) => number} up @param {number} end
 */
function steps(points, bottom, top, across, up, end) {
  const there = [];
  const back = [];
  for (let place = 0; place < points.length; place += 1) {
    const from = rounded(across(points[place].version));
    const to = rounded(place + 1 < points.length ? across(points[place + 1].version) : across(end));
    there.push(`${from} ${rounded(up(top[place]))}H${to}`);
    back.push(`${to} ${rounded(up(bottom[place]))}H${from}`);
  }
  return there.length ? `M${there.join("L")}L${back.reverse().join("L")}Z` : "";
}

/** @param {number} value */
function rounded(value) {
  return Math.round(value * 10) / 10;
}

/** Return two to five round values from 0 up to `most`. @param {number} most */
export function ticks(most) {
  if (!(most > 0)) return [0];
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((times) => times * power).find((size) => size >= rough * 0.999) ?? 10 * power;
  const found = [];
  for (let value = 0; value <= most * 1.0001; value += step) found.push(value);
  return found;
}

/**
 * Return the last of ordered values that is at most `value`, as its place; -1 where there is none.
 * @template T
 * @param {T[]} ordered @param {number} value @param {(one: T) => number} of
 */
export function lastUpTo(ordered, value, of) {
  let low = 0;
  let high = ordered.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(ordered[middle]) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * Merge marks that lie nearer than `apart` into one with all of them, so that each can be hit and named.
 * @template {{ version: number }} M
 * @param {M[]} marks ordered @param {(version: number) => number} across @param {number} apart
 * @returns {{ x: number, marks: M[] }[]}
 */
export function gathered(marks, across, apart) {
  /** @type {{ x: number, marks: M[] }[]} */
  const groups = [];
  for (const mark of marks) {
    const x = across(mark.version);
    const last = groups[groups.length - 1];
    if (last && x - last.x < apart) last.marks.push(mark);
    else groups.push({ x, marks: [mark] });
  }
  return groups;
}
