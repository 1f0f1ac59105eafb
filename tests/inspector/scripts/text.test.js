import assert from "node:assert/strict";
import { test } from "node:test";

import { ago, brief, bytes, duration, money, percent, shellWord, short } from "../../../timeline/inspector/web/pure/format.js";
import { readMarkdown, readSpans } from "../../../timeline/inspector/web/pure/markdown.js";
import { marked, pieces } from "../../../timeline/inspector/web/pure/marks.js";
import { duration as took } from "../../../timeline/inspector/web/timeline-ui/words.js";

test("numbers are short and never say more than is so", () => {
  assert.deepEqual([0, 999, 1000, 9_949, 9_950, 99_499, 999_499, 999_500, 12_345_678].map(short), ["0", "999", "1.0k", "9.9k", "10k", "99k", "999k", "1.00M", "12.3M"]);
  assert.deepEqual([0, 0.001, 0.5, 0.996, 1, 1.2].map(percent), ["0 %", "< 1 %", "50 %", "99 %", "100 %", "120 %"]);
  assert.deepEqual([0, 1234.5, 0.5, 0.0123, 0.00004].map(money), ["$0.00", "$1,234.50", "$0.50", "$0.012", "$0.000040"]);
  assert.deepEqual([0.004, 0.5, 12, 300, 7200, 200_000].map(duration), ["4 ms", "0.5 s", "12 s", "5 min", "2.0 h", "2 days"]);
  assert.deepEqual([12, 4_200, 65_536, 5_000_000].map(bytes), ["12 bytes", "4.2 KB", "66 KB", "5.0 MB"]);
});

test("how long a compaction took is rounded before it is divided", () => {
  assert.deepEqual([0.0004, 0.9994, 0.9996, 99.94].map(took), ["under 1 ms", "999 ms", "1.0 s", "99.9 s"]);
  assert.deepEqual([99.96, 119.4, 119.7, 3600].map(took), ["1 min 40 s", "1 min 59 s", "2 min 0 s", "60 min 0 s"]);
});

test("what is not known is a dash", () => {
  for (const write of [short, percent, money, duration]) assert.equal(write(null), "–");
});

test("a time is told by its distance, and by its day where that is long ago", () => {
  const now = Date.parse("2026-03-02T10:00:00Z");
  assert.equal(ago("2026-03-02T09:59:50Z", now), "now");
  assert.equal(ago("2026-03-02T09:20:00Z", now), "40 min ago");
  assert.equal(ago("2026-03-01T10:00:00Z", now), "24 h ago");
  assert.equal(ago("2025-03-01T10:00:00Z", now), "2025-03-01");
});

test("a brief text is one line, cut with a sign", () => {
  assert.equal(brief("  first\nsecond", 10), "first");
  assert.equal(brief("a long first line", 8), "a long…");
});

test("a word that a shell would read otherwise is quoted", () => {
  assert.equal(shellWord("cards"), "cards");
  assert.equal(shellWord("it's $HOME"), `'it'"'"'s $HOME'`);
});

test("pieces of a search are the whole text, in order, in whatever case", () => {
  const found = pieces("Never touch; NEVER.", "never");
  assert.deepEqual(found.filter((piece) => piece.hit).map((piece) => piece.text), ["Never", "NEVER"]);
  assert.equal(found.map((piece) => piece.text).join(""), "Never touch; NEVER.");
  assert.deepEqual(pieces("İstanbul is", "is").at(-1), { text: "is", hit: true });
  assert.deepEqual(marked("a «b» c", "b"), [{ text: "a ", hit: false }, { text: "b", hit: true }, { text: " c", hit: false }]);
});

test("the quotes of a text are no marks of the search", () => {
  const shown = (/** @type {string} */ snippet, /** @type {string} */ query) => marked(snippet, query).map((piece) => (piece.hit ? `[${piece.text}]` : piece.text)).join("");
  assert.equal(shown("«Да» и ««мир»», «Мир» дому: « мир »", "мир"), "«Да» и «[мир]», [Мир] дому: « мир »");
  assert.equal(shown("…»: «run_the tests» and «Straße", "run-the strasse"), "…»: [run_the tests] and «Straße");
});

test("Markdown is read into blocks, and tags in it are text", () => {
  const blocks = readMarkdown("# Head\n\nSome *em* and **strong**, `a <b>`.\n\n- one\n  - two\n\n```py\n<script>\n```\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |");
  assert.deepEqual(blocks.map((block) => block.kind), ["heading", "paragraph", "list", "code", "quote", "table"]);
  assert.deepEqual(readSpans("<img src=x onerror=alert(1)>"), [{ kind: "text", text: "<img src=x onerror=alert(1)>" }]);
});

test("a link keeps its target as text, whatever scheme it has", () => {
  assert.deepEqual(readSpans("see [here](javascript:alert`1`)").at(-1), { kind: "link", text: "here", target: "javascript:alert`1`" });
});

test("no text of Markdown takes long to read", () => {
  const start = process.cpuUsage();
  for (const hard of ["*".repeat(20_000), "`".repeat(20_001), "[".repeat(20_000), "**a".repeat(8_000), "a_b".repeat(8_000), "| ".repeat(10_000)]) readMarkdown(hard);
  const spent = process.cpuUsage(start).user / 1e6;
  assert.ok(spent < 2, `${spent} s`);
});

test("a text that was written to be parted in every way is read at once", () => {
  const many = 500_000;
  const kinds = (/** @type {string} */ text) => readMarkdown(text).map((block) => block.kind);
  assert.deepEqual(kinds(`# x${" ".repeat(many)}y`), ["heading"]);
  assert.deepEqual(kinds(`- ${" ".repeat(many)}\rx`), ["list"]);
  assert.deepEqual(kinds(`\`\`\`${" ".repeat(many)}\``), ["paragraph"]);
  assert.deepEqual(kinds(`${"~".repeat(many)}\``), ["paragraph"]);
  for (const signs of ["[".repeat(many), "`".repeat(many)]) assert.deepEqual(readSpans(signs), [{ kind: "text", text: signs }]);
});
