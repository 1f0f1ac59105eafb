// The arithmetic of the log's list: where a row lies, which row lies at a place, and which rows to draw.

/**
 * The heights of all rows. A row that was never drawn counts as its estimate; sums are kept in a Fenwick tree, so that
 * a measured height costs log n, also among 100,000 rows.
 */
export class Heights {
  /** @param {number} count @param {number} estimate */
  constructor(count, estimate) {
    this.estimate = estimate;
    this.count = 0;
    /** @type {Float64Array} */
    this.sums = new Float64Array(1);
    /** @type {Float32Array} */
    this.own = new Float32Array(0);
    this.resize(count);
  }

  /** Have so many rows; those that stay keep their heights. @param {number} count */
  resize(count) {
    if (count === this.count) return;
    if (count > this.count && count <= this.own.length) {
      // There is room: each new row enters the tree by itself.
      const from = this.count;
      this.count = count;
      for (let row = from; row < count; row += 1) {
        this.own[row] = this.estimate;
        this._seat(row + 1);
      }
      return;
    }
    const own = new Float32Array(Math.max(16, Math.ceil(count * 1.5))).fill(this.estimate);
    own.set(this.own.subarray(0, Math.min(this.count, count)));
    this.own = own;
    this.count = count;
    this.sums = new Float64Array(own.length + 1);
    for (let place = 1; place <= count; place += 1) {
      this.sums[place] += own[place - 1];
      const above = place + (place & -place);
      if (above <= count) this.sums[above] += this.sums[place];
    }
  }

  /** Fill the tree's node of a new last row from the nodes below it. @param {number} place */
  _seat(place) {
    let sum = this.own[place - 1];
    const bottom = place - (place & -place);
    for (let below = place - 1; below > bottom; below -= below & -below) sum += this.sums[below];
    this.sums[place] = sum;
  }

  /** Set the height of a row and return by how much it changed. @param {number} row @param {number} height */
  set(row, height) {
    if (row < 0 || row >= this.count) return 0;
    const before = this.own[row];
    this.own[row] = height;
    const change = this.own[row] - before;
    if (change) for (let place = row + 1; place <= this.count; place += place & -place) this.sums[place] += change;
    return change;
  }

  /** Return where a row begins; of `count`, the whole height. @param {number} row */
  offset(row) {
    let sum = 0;
    for (let place = Math.min(Math.max(row, 0), this.count); place > 0; place -= place & -place) sum += this.sums[place];
    return sum;
  }

  get total() {
    return this.offset(this.count);
  }

  /** Return the row that lies at a distance from the top. @param {number} distance */
  rowAt(distance) {
    if (this.count === 0) return 0;
    let place = 0;
    let left = Math.max(0, distance);
    for (let step = 1 << Math.floor(Math.log2(this.count)); step > 0; step >>= 1) {
      const next = place + step;
      if (next <= this.count && this.sums[next] <= left) {
        place = next;
        left -= this.sums[next];
      }
    }
    return Math.min(place, this.count - 1);
  }

  /**
   * Return the rows to draw for a part of the list: those that are seen, and as much again above and below them, at most
   * `most` rows. Rows without a height are left out.
   * @param {number} top @param {number} height @param {number} most
   * @returns {number[]}
   */
  span(top, height, most) {
    if (this.count === 0) return [];
    const seen = this.rowAt(top);
    const below = this._walk(seen, 1, this.offset(seen) - top, height, most);
    const above = this._walk(seen - 1, -1, 0, height, (most - below.length) >> 1);
    const end = below.length ? below[below.length - 1] + 1 : seen;
    const further = this._walk(end, 1, 0, height, most - below.length - above.length);
    return [...above.reverse(), ...below, ...further];
  }

  /** Collect rows with a height in one direction. @param {number} row @param {number} step @param {number} taken @param {number} height @param {number} most */
  _walk(row, step, taken, height, most) {
    const rows = [];
    for (let sum = taken; row >= 0 && row < this.count && sum < height && rows.length < most; row += step) {
      if (this.own[row] > 0) {
        rows.push(row);
        sum += this.own[row];
      }
    }
    return rows;
  }
}
