// Which ranges of rows to ask for, and which of them to keep.

/** Return the numbers of the pages that hold rows. @param {number} first @param {number} last the one behind @param {number} size */
export function pagesOf(first, last, size) {
  if (last <= first) return [];
  const numbers = [];
  for (let page = Math.floor(first / size); page <= Math.floor((last - 1) / size); page += 1) numbers.push(page);
  return numbers;
}

/**
 * A map that forgets what was not asked for longest.
 * @template K, V
 */
export class Recent {
  /** @param {number} most */
  constructor(most) {
    this.most = most;
    /** @type {Map<K, V>} */
    this.kept = new Map();
  }

  /** @param {K} key @returns {V | undefined} */
  get(key) {
    const found = this.kept.get(key);
    if (found !== undefined) {
      this.kept.delete(key);
      this.kept.set(key, found);
    }
    return found;
  }

  /** @param {K} key @param {V} value */
  set(key, value) {
    this.kept.delete(key);
    this.kept.set(key, value);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= this.most) break;
      this.kept.delete(oldest);
    }
  }

  /** @param {K} key */
  delete(key) {
    this.kept.delete(key);
  }

  clear() {
    this.kept.clear();
  }

  get size() {
    return this.kept.size;
  }
}
