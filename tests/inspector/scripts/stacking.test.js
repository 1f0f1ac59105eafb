import assert from "node:assert/strict";
import { test } from "node:test";

import { Recent, pagesOf } from "../../../timeline/inspector/web/pure/pages.js";
import { gathered, lastUpTo, scaled, stacked, summed, thinned, ticks } from "../../../timeline/inspector/web/pure/stacking.js";

test("thinned points keep the peak of each column", () => {
  const points = Array.from({ length: 10_000 }, (_, place) => ({ version: place + 1, fill: {}, total: place === 5_555 ? 900 : place % 100 }));
  const kept = thinned(points, 1, 10_000, 200);
  assert.ok(kept.length <= 200);
  assert.ok(kept.some((point) => point.total === 900));
});

test("areas lie on one another, and each holds until the next point", () => {
  const points = [
    { version: 1, fill: { system: 10, user: 5 }, total: 15 },
    { version: 3, fill: { system: 10, user: 20 }, total: 30 },
  ];
  const areas = stacked(points, ["system", "user", "absent"], (version) => version * 10, (tokens) => 100 - tokens, 5);
  assert.deepEqual(areas.map((area) => area.name), ["system", "user"]);
  assert.equal(areas[1].path, "M10 85H30L30 70H50L50 90H30L30 90H10Z");
});

test("ticks are round and begin at nothing", () => {
  assert.deepEqual(ticks(20_000), [0, 5_000, 10_000, 15_000, 20_000]);
  assert.deepEqual(ticks(0), [0]);
});

test("marks that would hide one another are one mark with all of them", () => {
  const groups = gathered([{ version: 1 }, { version: 2 }, { version: 40 }], (version) => version, 10);
  assert.deepEqual(groups.map((group) => group.marks.length), [2, 1]);
});

test("the last one up to a version is found, or none", () => {
  const calls = [3, 8, 8, 20];
  assert.equal(lastUpTo(calls, 2, (call) => call), -1);
  assert.equal(lastUpTo(calls, 8, (call) => call), 2);
  assert.equal(lastUpTo(calls, 99, (call) => call), 3);
});

test("pages hold the rows, and what was not asked for longest is forgotten", () => {
  assert.deepEqual(pagesOf(95, 201, 100), [0, 1, 2]);
  assert.deepEqual(pagesOf(5, 5, 100), []);
  const recent = new Recent(2);
  recent.set("a", 1);
  recent.set("b", 2);
  recent.get("a");
  recent.set("c", 3);
  assert.deepEqual([recent.get("a"), recent.get("b"), recent.get("c")], [1, undefined, 3]);
});

test("shares are told in the tokens that the limit is in", () => {
  assert.deepEqual(scaled({ prompts: 100, results: 7 }, 1.5), { prompts: 150, results: 11 });
  assert.equal(summed(scaled({ prompts: 100, results: 7 }, 1)), 107);
});
