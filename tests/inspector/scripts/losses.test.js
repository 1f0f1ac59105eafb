import assert from "node:assert/strict";
import test from "node:test";

import { decided, tried } from "../../../timeline/inspector/web/pure/decided.js";
import { byCause, sentBy } from "../../../timeline/inspector/web/pure/losses.js";
import { linesOf, policiesOf } from "../../../timeline/inspector/web/pure/replays.js";

const loss = (kind, lost_tokens, extra_cost) => ({ cache: { lost_tokens, cause: { kind }, extra_cost } });

test("losses are summed by their cause, the dearest first, and an unknown price stays unknown", () => {
  const found = byCause([loss("gap", 10, 0.5), loss("hide", 900, 2), loss("gap", 20, 0.25), loss("model", 5, null), { cache: null }, { cache: { lost_tokens: 0, cause: null, extra_cost: 0 } }]);
  assert.deepEqual(found, [
    { kind: "hide", times: 1, lost_tokens: 900, extra_cost: 2 },
    { kind: "gap", times: 2, lost_tokens: 30, extra_cost: 0.75 },
    { kind: "model", times: 1, lost_tokens: 5, extra_cost: null },
  ]);
});

test("what a request sent is all of its input, cached or not", () => {
  assert.equal(sentBy({ input_tokens: 1, cache_read_tokens: 2, cache_write_5m_tokens: 3, cache_write_1h_tokens: 4, output_tokens: 100 }), 10);
});

test("policies of an address stand once each, and no more than there is room for", () => {
  assert.deepEqual(policiesOf("a, b,a,,c", 2), ["b", "c"]);
  assert.deepEqual(policiesOf(undefined, 4), []);
});

test("lines share one scale, and of calls in one column the highest stands", () => {
  const { most, paths } = linesOf([[{ number: 1, tokens: 0 }, { number: 3, tokens: 50 }], [{ number: 1, tokens: 100 }]], 100, 10);
  assert.equal(most, 100);
  assert.deepEqual(paths, ["M0 12H100V7", "M0 2"]);
});

test("a dry run says what would change, and a decision what it did", () => {
  const answer = { decision: "hide", conversation: "c", version: 9, blocks: [{ version: 4 }], blocks_left_out: 0, reverted: [], gone: 0, before_tokens: 2000, after_tokens: 1000, base: null };
  assert.equal(tried(answer), "It would change @4. The window goes from 2.0k to 1.0k tokens.");
  assert.equal(decided(answer), "Done, as version 9 of the log. The window went from 2.0k to 1.0k tokens.");
  assert.match(tried({ ...answer, after_tokens: 1999 }), /from 2,000 to 1,999 tokens/);
  assert.match(tried({ ...answer, blocks: Array.from({ length: 8 }, (_, version) => ({ version })) }), /@5 and 2 more/);
  assert.match(tried({ ...answer, decision: "undo", reverted: [7], blocks: [] }), /1 compaction would be undone: @7/);
  assert.match(tried({ ...answer, decision: "fork", conversation: "c.fork-3", base: 3 }), /c.fork-3 would share the log up to version 3/);
  assert.equal(decided({ ...answer, decision: "fork", conversation: "c.fork-3", base: 3 }), "c.fork-3 begins after version 3.");
});
