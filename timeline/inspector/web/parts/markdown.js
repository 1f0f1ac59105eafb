// Markdown as elements. All of its text is text nodes; a link is its text with the target beside it, and leads nowhere.

import { readMarkdown } from "../pure/markdown.js";
import { html, useMemo } from "./page.js";

/** @typedef {import("../pure/markdown.js").Span} Span */
/** @typedef {import("../pure/markdown.js").Block} Block */

/** @param {{ text: string }} props */
export function Markdown({ text }) {
  const blocks = useMemo(() => readMarkdown(text), [text]);
  return html`<div class="markdown">${blocks.map((block, place) => html`<${Piece} key=${place} block=${block} />`)}</div>`;
}

/** @param {{ block: Block }} props */
function Piece({ block }) {
  if (block.kind === "heading") return html`<p class=${`md-head md-${block.level}`}>${spans(block.spans)}</p>`;
  if (block.kind === "rule") return html`<hr />`;
  if (block.kind === "code") return html`<pre tabindex="0" role="region" aria-label=${block.language ? `Code, ${block.language}` : "Code"}>${block.text}</pre>`;
  if (block.kind === "quote") return html`<blockquote>${spans(block.spans)}</blockquote>`;
  if (block.kind === "table") {
    return html`<div class="scroll" tabindex="0" role="region" aria-label="Table"><table><tbody>
      ${block.rows.map((cells, row) => html`<tr key=${row}>${cells.map((cell, place) => html`<td key=${place}>${spans(cell)}</td>`)}</tr>`)}
    </tbody></table></div>`;
  }
  if (block.kind === "list") {
    const items = block.items.map((item, place) => html`<li key=${place} class=${`depth-${item.depth}`}>${spans(item.spans)}</li>`);
    return block.ordered ? html`<ol start=${block.start}>${items}</ol>` : html`<ul>${items}</ul>`;
  }
  return html`<p>${spans(block.spans)}</p>`;
}

/** @param {Span[]} found */
function spans(found) {
  return found.map((span, place) => {
    if (span.kind === "code") return html`<code key=${place}>${span.text}</code>`;
    if (span.kind === "strong") return html`<strong key=${place}>${span.text}</strong>`;
    if (span.kind === "em") return html`<em key=${place}>${span.text}</em>`;
    if (span.kind === "link") return html`<span key=${place} class="target">${span.text} <span>(${span.target})</span></span>`;
    return span.text;
  });
}
