import assert from "node:assert/strict";
import { test } from "node:test";

import { changed, readAddress, segmentOf, segmentsOf, writeAddress } from "../../../timeline/inspector/web/pure/address.js";

test("an address that was written reads the same, whatever the id holds", () => {
  for (const id of ["cards", "a/b?c#d", "100 %", "<script>", "ümlaut", "flashcards.cut_point-6000"]) {
    const address = { conversation: id, view: "context", given: { at: "512", query: "a&b=c «d»" } };
    assert.deepEqual(readAddress(writeAddress(address)), address);
  }
});

test("an id is a segment that browsers send, and reads the same, whatever it holds", () => {
  for (const id of [".", "..", "...", "1", "a/b?c#d", "ümlaut", "/2"]) {
    const path = `conversations/${segmentOf(id)}`;
    assert.equal(new URL(`v1/${path}/blocks`, "http://host/a/").pathname, `/a/v1/${path}/blocks`);
    const [, segment, what] = segmentsOf(`${path}/blocks`);
    assert.deepEqual([decodeURIComponent(segment), what], [id, "blocks"]);
    assert.equal(decodeURIComponent(segmentsOf(path)[1]), id);
  }
});

test("no address is the list of conversations", () => {
  for (const hash of ["", "#", "#/"]) assert.deepEqual(readAddress(hash), { conversation: "", view: "", given: {} });
});

test("an unknown view of a conversation is its log, and a broken escape is taken as it is written", () => {
  assert.deepEqual(readAddress("#/c/100%/nonsense"), { conversation: "100%", view: "log", given: {} });
});

test("a changed value stays beside the others, and null takes one out", () => {
  const address = readAddress("#/c/cards?at=3&block=7");
  assert.equal(writeAddress(changed(address, { at: 9 })), "#/c/cards?at=9&block=7");
  assert.equal(writeAddress(changed(address, { block: null })), "#/c/cards?at=3");
});
