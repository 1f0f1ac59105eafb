// A small subset of Markdown, as a tree of blocks and spans. There is no raw HTML in it: what looks like a tag is text. A
// link is its text with its target beside it, and leads nowhere.

/**
 * @typedef {{ kind: "text" | "code" | "strong" | "em" | "link", text: string, target?: string }} Span
 * @typedef {{ kind: "heading", level: number, spans: Span[] }} Heading
 * @typedef {{ kind: "paragraph" | "quote", spans: Span[] }} Paragraph
 * @typedef {{ kind: "code", language: string, text: string }} Code
 * @typedef {{ kind: "list", ordered: boolean, start: number, items: { depth: number, spans: Span[] }[] }} List
 * @typedef {{ kind: "table", rows: Span[][][] }} Table
 * @typedef {{ kind: "rule" }} Rule
 * @typedef {Heading | Paragraph | Code | List | Table | Rule} Block
 */

// A text may be an attacker's: no two parts of a pattern that stand beside each other take the same character, or a line
// of blanks would be parted in every way.
const ITEM = /^(\s*)(?:([-*+])|(\d{1,9})[.)])\s+([^]*)$/;
const FENCE = /^\s{0,3}(`{3,}|~{3,}(?!~))([^`]*)$/;
const HEADING = /^\s{0,3}(#{1,6})\s([^]*)$/;
const RULE = /^\s{0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;

/** Read a text. @param {string} text @returns {Block[]} */
export function readMarkdown(text) {
  const lines = text.split("\n");
  /** @type {Block[]} */
  const blocks = [];
  let place = 0;
  while (place < lines.length) {
    const line = lines[place];
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (!line.trim()) place += 1;
    else if (fence) place = readCode(lines, place, fence, blocks);
    else if (heading) {
      blocks.push({ kind: "heading", level: heading[1].length, spans: readSpans(withoutSigns(heading[2])) });
      place += 1;
    } else if (RULE.test(line)) {
      blocks.push({ kind: "rule" });
      place += 1;
    } else if (ITEM.test(line)) place = readList(lines, place, blocks);
    else if (line.startsWith("|")) place = readTable(lines, place, blocks);
    else place = readParagraph(lines, place, blocks);
  }
  return blocks;
}

/** Return a heading without the signs at its end. @param {string} text */
function withoutSigns(text) {
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return text.slice(0, end).trim();
}

/** @param {string[]} lines @param {number} place @param {RegExpExecArray} fence @param {Block[]} blocks */
function readCode(lines, place, fence, blocks) {
  let end = place + 1;
  while (end < lines.length && !lines[end].trim().startsWith(fence[1])) end += 1;
  blocks.push({ kind: "code", language: fence[2].trim(), text: lines.slice(place + 1, end).join("\n") });
  return end + 1;
}

/** @param {string[]} lines @param {number} place @param {Block[]} blocks */
function readList(lines, place, blocks) {
  const first = /** @type {RegExpExecArray} */ (ITEM.exec(lines[place]));
  const ordered = first[3] !== undefined;
  /** @type {{ depth: number, spans: Span[] }[]} */
  const items = [];
  while (place < lines.length) {
    const item = ITEM.exec(lines[place]);
    if (!item || RULE.test(lines[place])) break;
    if (!item[1] && (item[3] !== undefined) !== ordered) break;
    items.push({ depth: Math.min(4, item[1].length >> 1), spans: readSpans(item[4]) });
    place += 1;
  }
  blocks.push({ kind: "list", ordered, start: Number(first[3] ?? 1), items });
  return place;
}

/** @param {string[]} lines @param {number} place @param {Block[]} blocks */
function readTable(lines, place, blocks) {
  const rows = [];
  for (; place < lines.length && lines[place].startsWith("|"); place += 1) {
    const cells = lines[place].replace(/^\||\|\s*$/g, "").split("|");
    if (!cells.every((cell) => /^\s*:?-+:?\s*$/.test(cell))) rows.push(cells.map((cell) => readSpans(cell.trim())));
  }
  blocks.push({ kind: "table", rows });
  return place;
}

/** @param {string[]} lines @param {number} place @param {Block[]} blocks */
function readParagraph(lines, place, blocks) {
  const quote = lines[place].startsWith(">");
  const taken = [];
  while (place < lines.length && lines[place].trim()) {
    const line = lines[place];
    const other = FENCE.test(line) || HEADING.test(line) || ITEM.test(line) || line.startsWith("|") || line.startsWith(">") !== quote;
    if (taken.length && other) break;
    taken.push(quote ? line.replace(/^>\s?/, "") : line);
    place += 1;
  }
  blocks.push({ kind: quote ? "quote" : "paragraph", spans: readSpans(taken.join("\n")) });
  return place;
}

const SPAN = /(?<!`)(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([^\s*](?:[^*\n]*[^\s*])?)\*\*|(?<![\w*])\*([^\s*](?:[^*\n]*[^\s*])?)\*(?!\w)|!?\[([^[\]\n]*)\]\(([^()\s]+)\)/g;

/** Read what is inside a line. @param {string} text @returns {Span[]} */
export function readSpans(text) {
  /** @type {Span[]} */
  const spans = [];
  let from = 0;
  for (const found of text.matchAll(SPAN)) {
    if (found.index > from) spans.push({ kind: "text", text: text.slice(from, found.index) });
    if (found[2] !== undefined) spans.push({ kind: "code", text: found[2] });
    else if (found[3] !== undefined) spans.push({ kind: "strong", text: found[3] });
    else if (found[4] !== undefined) spans.push({ kind: "em", text: found[4] });
    else spans.push({ kind: "link", text: found[5], target: found[6] });
    from = found.index + found[0].length;
  }
  if (from < text.length) spans.push({ kind: "text", text: text.slice(from) });
  return spans;
}
