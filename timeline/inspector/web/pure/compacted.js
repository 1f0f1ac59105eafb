// What had been compacted at a version of the log.

/**
 * @typedef {{ version: number, reverted_by?: number | null }} Compaction
 */

/**
 * Return how many compactions there were at a version, undone ones too, and the newest that held there: one that was
 * undone later held.
 * @template {Compaction} C
 * @param {C[]} compactions oldest first @param {number} at
 * @returns {{ count: number, newest: C | null }}
 */
export function compactedAt(compactions, at) {
  const made = compactions.filter((one) => one.version <= at);
  const held = made.filter((one) => !one.reverted_by || one.reverted_by > at);
  return { count: made.length, newest: held[held.length - 1] ?? null };
}
