// What calls sent, and what they lost of the provider's cache, as sums.

/** The tokens that a request sent. @param {Record<string, number>} used */
export function sentBy(used) {
  return used.input_tokens + used.cache_read_tokens + used.cache_write_5m_tokens + used.cache_write_1h_tokens;
}

/**
 * The losses of calls by their cause, the dearest first; a price that is not known makes its sum unknown.
 * @param {{ cache: { lost_tokens: number, cause: { kind: string } | null, extra_cost: number | null } | null }[]} calls
 */
export function byCause(calls) {
  /** @type {Map<string, { kind: string, times: number, lost_tokens: number, extra_cost: number | null }>} */
  const found = new Map();
  for (const { cache } of calls) {
    if (!cache?.lost_tokens || !cache.cause) continue;
    const sum = found.get(cache.cause.kind) ?? { kind: cache.cause.kind, times: 0, lost_tokens: 0, extra_cost: 0 };
    sum.times += 1;
    sum.lost_tokens += cache.lost_tokens;
    sum.extra_cost = sum.extra_cost === null || cache.extra_cost === null ? null : sum.extra_cost + cache.extra_cost;
    found.set(cache.cause.kind, sum);
  }
  return [...found.values()].sort((one, other) => (other.extra_cost ?? 0) - (one.extra_cost ?? 0) || other.lost_tokens - one.lost_tokens);
}
