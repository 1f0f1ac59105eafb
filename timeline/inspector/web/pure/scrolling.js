// A list that is higher than what browsers can lay out: Firefox ends near 17.9 million pixels. Above `MOST` the element
// is that high, and its scroll position stands for one of the whole list; small steps stay as long as they were meant.

/** The height up to which an element is as high as its list. */
export const MOST = 15_000_000;

/**
 * @typedef {object} Place
 * @property {number} physical the element's own scroll position
 * @property {number} logical the one in the whole list
 */

/** Return how high the element is. @param {number} total */
export function physicalHeight(total) {
  return Math.min(total, MOST);
}

/** How far the list moves for a pixel of the scroll bar. @param {number} total @param {number} view */
export function ratio(total, view) {
  const room = physicalHeight(total) - view;
  return room > 0 ? Math.max(1, (total - view) / room) : 1;
}

/**
 * Follow the element to a new scroll position. A step of less than two screens (a wheel, a key) moves the list by as
 * many pixels; a longer one (the bar was dragged) goes to the place that the bar shows, and so do both ends.
 * @param {Place} place @param {number} physical @param {number} total @param {number} view
 * @returns {Place}
 */
export function follow(place, physical, total, view) {
  const by = ratio(total, view);
  const end = Math.max(0, total - view);
  if (by === 1) return { physical, logical: Math.min(physical, end) };
  const step = physical - place.physical;
  const atEdge = physical <= 0 || physical >= physicalHeight(total) - view - 0.5;
  const logical = Math.abs(step) < 2 * view && !atEdge ? place.logical + step : physical * by;
  return { physical, logical: Math.min(Math.max(0, logical), end) };
}

/**
 * Return the place whose scroll position is the list's again: after many small steps the bar has drifted from it.
 * @param {number} logical @param {number} total @param {number} view
 * @returns {Place}
 */
export function settle(logical, total, view) {
  const inside = Math.min(Math.max(0, logical), Math.max(0, total - view));
  return { logical: inside, physical: inside / ratio(total, view) };
}
