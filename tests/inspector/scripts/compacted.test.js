import assert from "node:assert/strict";
import { test } from "node:test";

import { compactedAt } from "../../../timeline/inspector/web/pure/compacted.js";

const MADE = [{ version: 10 }, { version: 20, reverted_by: 30 }, { version: 40 }];

test("a compaction behind the version is not counted", () => {
  assert.deepEqual(compactedAt(MADE, 9), { count: 0, newest: null });
  assert.equal(compactedAt(MADE, 39).count, 2);
  assert.equal(compactedAt(MADE, 40).newest?.version, 40);
});

test("a compaction holds until it is undone, and is counted for good", () => {
  assert.equal(compactedAt(MADE, 29).newest?.version, 20);
  assert.deepEqual(compactedAt(MADE, 30), { count: 2, newest: MADE[0] });
});
