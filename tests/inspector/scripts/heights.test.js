import assert from "node:assert/strict";
import { test } from "node:test";

import { Heights } from "../../../timeline/inspector/web/pure/heights.js";

/** A generator of the same numbers each time. */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

test("offsets and rows agree with plain sums, through growth, shrinking and measured heights", () => {
  const pick = random(7);
  const heights = new Heights(5, 40);
  let plain = new Array(5).fill(40);
  for (let round = 0; round < 400; round += 1) {
    const what = pick(4);
    if (what === 0) {
      const count = Math.max(0, plain.length + pick(60) - 20);
      heights.resize(count);
      plain = Array.from({ length: count }, (_, row) => plain[row] ?? 40);
    } else if (plain.length) {
      const row = pick(plain.length);
      const height = 10 + pick(300);
      assert.equal(heights.set(row, height), height - plain[row]);
      plain[row] = height;
    }
    const total = plain.reduce((sum, height) => sum + height, 0);
    assert.equal(heights.total, total);
    if (!plain.length) continue;
    const place = pick(total);
    let row = 0;
    for (let sum = plain[0]; sum <= place; sum += plain[row]) row += 1;
    assert.equal(heights.rowAt(place), row);
    assert.equal(heights.offset(row), plain.slice(0, row).reduce((sum, height) => sum + height, 0));
  }
});

test("what lies outside of the list is its first or last row", () => {
  const heights = new Heights(3, 10);
  assert.equal(heights.rowAt(-50), 0);
  assert.equal(heights.rowAt(5_000), 2);
  assert.equal(new Heights(0, 10).rowAt(10), 0);
});

test("the rows to draw hold what is seen, in order, and are never more than allowed", () => {
  const heights = new Heights(100_000, 50);
  for (const top of [0, 12_345, 2_500_000, 4_999_400]) {
    const rows = heights.span(top, 600, 60);
    for (let row = heights.rowAt(top); row <= heights.rowAt(top + 599); row += 1) assert.ok(rows.includes(row), `${top}: ${row}`);
    assert.deepEqual(rows, [...rows].sort((one, other) => one - other));
    assert.ok(rows.length <= 60 && new Set(rows).size === rows.length);
  }
});

test("rows without a height are not drawn, however many lie between", () => {
  const heights = new Heights(10_000, 50);
  for (let row = 0; row < 10_000; row += 1) if (row % 500) heights.set(row, 0);
  assert.deepEqual(heights.span(100, 100, 60), [0, 500, 1000, 1500, 2000, 2500]);
});

test("an empty list draws nothing", () => {
  assert.deepEqual(new Heights(0, 50).span(0, 600, 60), []);
});

test("one row among 100,000 is measured in microseconds", () => {
  const heights = new Heights(100_000, 50);
  const start = process.cpuUsage();
  for (let row = 0; row < 100_000; row += 1) heights.set(row, 20 + (row % 200));
  const spent = process.cpuUsage(start).user / 1e6;
  assert.ok(spent < 1, `${spent} s`);
});
