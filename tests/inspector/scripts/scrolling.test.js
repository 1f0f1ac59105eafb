import assert from "node:assert/strict";
import { test } from "node:test";

import { MOST, follow, physicalHeight, ratio, settle } from "../../../timeline/inspector/web/pure/scrolling.js";

const VIEW = 800;
const LONG = 90_000_000;

test("a list that a browser can lay out scrolls as it is", () => {
  assert.equal(physicalHeight(60_000), 60_000);
  assert.deepEqual(follow({ physical: 10, logical: 10 }, 4_321, 60_000, VIEW), { physical: 4_321, logical: 4_321 });
});

test("a longer one is as high as browsers allow, and a small step moves it by as many pixels", () => {
  assert.equal(physicalHeight(LONG), MOST);
  const place = follow({ physical: 1_000_000, logical: 6_000_000 }, 1_000_120, LONG, VIEW);
  assert.equal(place.logical, 6_000_120);
});

test("a dragged bar goes to the place that it shows", () => {
  const place = follow({ physical: 0, logical: 0 }, 7_000_000, LONG, VIEW);
  assert.equal(place.logical, 7_000_000 * ratio(LONG, VIEW));
});

test("the end of the bar is the end of the list, also after steps that drifted from it", () => {
  const bottom = MOST - VIEW;
  assert.equal(follow({ physical: bottom - 100, logical: 1_000 }, bottom, LONG, VIEW).logical, LONG - VIEW);
  assert.equal(follow({ physical: 60, logical: 5_000 }, 0, LONG, VIEW).logical, 0);
});

test("at rest the bar shows where the list is", () => {
  const place = settle(30_000_000, LONG, VIEW);
  assert.ok(Math.abs(place.physical * ratio(LONG, VIEW) - 30_000_000) < 1);
  assert.deepEqual(settle(LONG, LONG, VIEW).logical, LONG - VIEW);
});

test("a list that is smaller than its view does not scroll", () => {
  assert.deepEqual(settle(500, 300, VIEW), { logical: 0, physical: 0 });
});
