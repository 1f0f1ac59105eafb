// View 1: all conversations, the newest first. How full each is, and what was compacted, shows without opening it.

import { ago, counted, money, percent, short } from "../pure/format.js";
import { writeAddress } from "../pure/address.js";
import { Empty, Failed, Loading, useLoaded } from "../parts/loading.js";
import { html, useEffect, useState } from "../parts/page.js";
import { source } from "../parts/source.js";
import { slide } from "../parts/state.js";

const PAGE = 50;

/** @param {{ query: string }} props */
export function Conversations({ query }) {
  const first = useLoaded("conversations", { query, limit: PAGE }, "conversations", query ? 200 : 0);
  const [more, setMore] = useState(/** @type {{ rows: any[], after: string | null } | null} */ (null));
  useEffect(() => setMore(null), [first.data]);
  const rows = first.data ? [...first.data.conversations, ...(more?.rows ?? [])] : [];
  const after = more ? more.after : (first.data?.next_cursor ?? null);
  const further = async () => {
    const page = await source.now.get("conversations", { query, limit: PAGE, cursor: after });
    setMore({ rows: [...(more?.rows ?? []), ...page.conversations], after: page.next_cursor ?? null });
  };
  return html`<section class="conversations" aria-labelledby="title">
    <div class="title-row">
      <h1 id="title">Conversations</h1>
      <input type="search" class="filter" aria-label="Filter by title or id" placeholder="Filter by title or id" value=${query} autocomplete="off" spellcheck=${false}
        onInput=${(/** @type {any} */ event) => slide({ query: event.target.value })} />
    </div>
    ${first.error
      ? html`<${Failed} error=${first.error} of="The list of conversations" />`
      : first.data === null
        ? html`<${Loading} of="The list of conversations" lines=${6} />`
        : rows.length === 0
          ? html`<${Nothing} query=${query} />`
          : html`<ul class="talks">${rows.map((row) => html`<${Talk} key=${row.id} row=${row} />`)}</ul>`}
    ${after && html`<button class="further" onClick=${further}>Show more</button>`}
  </section>`;
}

/** @param {{ query: string }} props */
function Nothing({ query }) {
  if (query) return html`<${Empty} title="No conversation has this in its title or id"><p>Search the texts of all conversations with the field above.</p><//>`;
  return html`<${Empty} title="No conversation yet">
    <p>An application writes one with <code>Timeline.open(store, "…")</code>; a recorded session becomes one with <code>timeline import session.jsonl</code>.</p>
  <//>`;
}

/** @param {{ row: any }} props */
function Talk({ row }) {
  const { fill } = row;
  const now = Date.now();
  return html`<li class="talk">
    <a class="talk-title" href=${writeAddress({ conversation: row.id, view: "", given: {} })}>${row.title || row.id}</a>
    <span class="talk-id">${row.title ? row.id : ""}${row.parent ? html` <span class="fork" title=${`${row.parent.relation ?? "fork"} of ${row.parent.conversation}`}>↳ ${row.parent.conversation}</span>` : ""}</span>
    <span class="talk-fill">
      ${row.problem
        ? html`<strong class="bad" title=${row.problem}>damaged</strong> <span>${row.problem}</span>`
        : fill === null
        ? html`<b>${short(row.tokens)}</b> tokens`
        : html`<span class="meter" role="img" aria-label=${`context ${percent(fill)} full`}><i class=${level(fill)} style=${{ width: `${Math.min(100, 100 * fill)}%` }}></i></span>
            <b>${percent(fill)}</b> <span class="of">${short(row.tokens)} of ${short(row.limit)}</span>`}
    </span>
    <span class="talk-facts">
      ${row.turns !== null && html`<span>${counted(row.turns, "turn")}</span>`}
      <span class=${row.compactions ? "some" : ""} title=${row.last_compaction_at ? `the newest ${ago(row.last_compaction_at, now)}` : ""}>${row.compactions ? counted(row.compactions, "compaction") : row.problem ? "" : "not compacted"}</span>
      ${row.cost !== null && row.cost !== undefined && html`<span>${money(row.cost)}</span>`}
      <time datetime=${row.updated_at} title=${row.updated_at}>${ago(row.updated_at, now)}</time>
    </span>
  </li>`;
}

/** @param {number | null} fill */
function level(fill) {
  return fill === null ? "" : fill > 0.95 ? "over" : fill > 0.8 ? "high" : "";
}
