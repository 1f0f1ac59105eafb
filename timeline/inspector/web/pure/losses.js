// What calls sent, and what they lost of the provider's cache, as sums.

/** The tokens that a request sent. @param {Record<string, number>} used */
export function sentBy(used) {
  return used.input_tokens + used.cache_read_tokens + used.cache_write_5m_tokens + used.cache_write_1h_tokens;
}

/**
 * The losses of calls by their cause, the dearest first; a price that is not known makes its sum unknown.
 * @param {{ cache: { lost: number, cause: { kind: string } | null, extra: number | null } | null }[]} calls
 */
export function byCause(calls) {
  /** @type {Map<string, { kind: string, times: number, lost: number, extra: number | null }>} */
  const found = new Map();
  for (const { cache } of calls) {
    if (!cache?.lost || !cache.cause) continue;
    const sum = found.get(cache.cause.kind) ?? { kind: cache.cause.kind, times: 0, lost: 0, extra: 0 };
    sum.times += 1;
    sum.lost += cache.lost;
    sum.extra = sum.extra === null || cache.extra === null ? null : sum.extra + cache.extra;
    found.set(cache.cause.kind, sum);
  }
  return [...found.values()].sort((one, other) => (other.extra ?? 0) - (one.extra ?? 0) || other.lost - one.lost);
}
