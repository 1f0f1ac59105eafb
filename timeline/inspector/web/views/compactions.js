// View 6: every compaction as a card: why it ran, what it covered, its summary in full, and how the next one went on from it.

import { clock, counted, day, duration, money, percent, short, spaced, whole } from "../pure/format.js";
import { compactedAt } from "../pure/compacted.js";
import { Empty, Shown, useLoaded } from "../parts/loading.js";
import { Decisions } from "../parts/deciding.js";
import { html, useEffect, useRef, useState } from "../parts/page.js";
import { Command } from "../parts/pieces.js";
import { Markdown } from "../parts/markdown.js";
import { pathOf } from "../parts/source.js";
import { linkTo, open, slide } from "../parts/state.js";
import { shellWord } from "../pure/format.js";

/** @param {{ id: string, row: any, given: Record<string, string>, at: number }} props */
export function Compactions({ id, row, given, at }) {
  const found = useLoaded(pathOf(id, "compactions"), { _seen: row.version }, id);
  return html`<${Shown} answer=${found} of="The compactions" lines=${6}>${(/** @type {any} */ data) => {
    const cards = data.compactions;
    if (!cards.length && !(data.failures ?? []).length) {
      return html`<${Empty} title="Nothing was compacted yet"><p>The context never rose above the trigger of its policy, or the policy hides old blocks instead.</p><//><${CompactNow} id=${id} />`;
    }
    const newest = compactedAt(cards, at).newest ?? cards[at < row.version ? 0 : cards.length - 1];
    const chosen = cards.find((/** @type {any} */ card) => String(card.version) === given.compaction) ?? newest;
    const beside = cards.find((/** @type {any} */ card) => String(card.version) === given.beside);
    return html`<div class="compactions">
      <${Chain} cards=${cards} failures=${data.failures ?? []} chosen=${chosen} at=${at} />
      ${chosen && html`<div class=${beside ? "cards-beside two" : "cards-beside"}>
        ${beside && html`<${Card} key=${beside.version} id=${id} card=${beside} cards=${cards} at=${at} second=${true} />`}
        <${Card} key=${chosen.version} id=${id} card=${chosen} cards=${cards} at=${at} second=${false} beside=${beside} />
      </div>`}
      <${CompactNow} id=${id} />
    </div>`;
  }}<//>`;
}

/** A compaction by hand, where that is allowed. @param {{ id: string }} props */
function CompactNow({ id }) {
  const choice = { key: "compact", label: "Compact now", given: { decision: "compact" }, field: { name: "instructions", label: "What the summary should focus on", placeholder: "nothing in particular" } };
  return html`<${Decisions} id=${id} title="Compact now" note="Compacts whatever the size of the context, under the conversation's policy." choices=${[choice]} />`;
}

/** The row of all compactions, and of those that failed. @param {{ cards: any[], failures: any[], chosen: any, at: number }} props */
function Chain({ cards, failures, chosen, at }) {
  const here = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => here.current?.scrollIntoView({ block: "nearest", inline: "center" }), [chosen?.version]);
  return html`<nav class="chain" aria-label="All compactions">
    ${cards.map((card) => {
      const names = ["chain-card", card === chosen && "chosen", card.reverted_by && "undone", card.version > at && "later"];
      return html`<a key=${card.version} ref=${card === chosen ? here : null} class=${names.filter(Boolean).join(" ")} href=${linkTo("compactions", { compaction: card.version, beside: null })} aria-current=${card === chosen ? "true" : null}>
        <b>#${card.compaction_number}</b> <span>${short(card.before_tokens)} → ${short(card.after_tokens)}</span>
        <small>${card.reverted_by ? "undone" : spaced(card.reason)}, ${clock(card.at).slice(0, 5)}</small>
      </a>`;
    })}
    ${failures.map((failure) => html`<a key=${`f${failure.version}`} class="chain-card failed-card" href=${linkTo("log", { at: failure.version })} title=${failure.detail}><b>▲</b> <span>failed</span><small>${spaced(failure.reason)}</small></a>`)}
  </nav>`;
}

/** @param {{ id: string, card: any, cards: any[], at: number, second: boolean, beside?: any }} props */
function Card({ id, card, cards, at, second, beside = null }) {
  const found = useLoaded(pathOf(id, `compactions/${card.version}`), {}, `${id} ${card.version}`);
  const place = cards.indexOf(card);
  const earlier = cards[place - 1];
  const next = cards[place + 1];
  return html`<article class=${card.reverted_by ? "compaction undone" : "compaction"} aria-labelledby=${`compaction-${card.version}`}>
    <header>
      <h2 id=${`compaction-${card.version}`}>Compaction ${card.compaction_number}</h2>
      <p class="faint">${day(card.at)} ${clock(card.at)}, <a href=${linkTo("log", { at: card.version })}>version ${whole(card.version)}</a>${card.reverted_by ? html`, <strong>undone at <a href=${linkTo("log", { at: card.reverted_by })}>${whole(card.reverted_by)}</a></strong>` : ""}${card.version > at ? `, after version ${whole(at)}` : ""}</p>
      ${second && html`<button class="quiet close" aria-label="Close this compaction" onClick=${() => slide({ beside: null })}>✕</button>`}
    </header>
    <${Saved} card=${card} />
    <${Facts} card=${card} />
    <div class="card-ways">
      <a href=${linkTo("log", { at: Math.max(1, card.version - 1), block: null })}>The log right before it</a>
      ${card.covers?.ranges?.length > 0 && html`<a href=${linkTo("log", { at: card.version, block: `@${card.covers.ranges[0][0]}` })}>What was covered</a>`}
      ${!beside && !second && earlier && html`<button class="link" onClick=${() => open({ beside: earlier.version })}>Beside the one before it</button>`}
      ${!beside && !second && !earlier && next && html`<button class="link" onClick=${() => open({ compaction: next.version, beside: card.version })}>Beside the next one</button>`}
    </div>
    ${!card.reverted_by && !second && html`<${Decisions} id=${id} title="Take it back" choices=${[{ key: "undo", label: card.superseded_by ? "Undo it and those built on it" : "Undo it", given: { decision: "undo", version: card.version, cascade: Boolean(card.superseded_by) } }]} />`}
    <${Shown} answer=${found} of="The summary" lines=${8}>${(/** @type {any} */ data) => html`<${Summary} data=${data} number=${card.compaction_number} />`}<//>
    ${!card.reverted_by && html`<details class="ways"><summary>How to take it back in a terminal</summary><${Command} text=${`timeline undo ${shellWord(id)} --version ${card.version}${card.superseded_by ? " --cascade" : ""}`} /></details>`}
  </article>`;
}

/** @param {{ card: any }} props */
function Saved({ card }) {
  const most = Math.max(card.before_tokens, card.after_tokens, 1);
  return html`<div class="saved">
    <p class="figure"><b>${short(card.before_tokens)} → ${short(card.after_tokens)}</b> <span>tokens${card.saved_share === null ? "" : `, ${percent(card.saved_share)} less`}</span></p>
    <div class="saved-bar" role="img" aria-label=${`${whole(card.before_tokens)} tokens before, ${whole(card.after_tokens)} after`}><i style=${{ width: `${(100 * card.before_tokens) / most}%` }}></i><i class="after" style=${{ width: `${(100 * card.after_tokens) / most}%` }}></i></div>
  </div>`;
}

/** @param {{ card: any }} props */
function Facts({ card }) {
  const turns = card.first_turn_id ? (card.last_turn_id && card.first_turn_id !== card.last_turn_id ? `${spaced(card.first_turn_id)} to ${spaced(card.last_turn_id)}` : `from ${spaced(card.first_turn_id)} on`) : "";
  const rows = [
    ["why", spaced(card.reason) + (card.target_missed ? ", and its target was missed" : "")],
    ["cut", `${card.split_turn_id ? `inside ${spaced(card.split_turn_id)}` : "between turns"}${card.cut ? `, before version ${whole(card.cut)}` : ""}`],
    ["covered", `${counted(card.covered_blocks, "block")}, ${short(card.covered_tokens)} tokens${turns ? `, ${turns}` : ""}`],
    ["carried", card.carried.length ? counted(card.carried.length + (card.left_out.carried ?? 0), "block") + ", word for word" : null],
    ["summary", `${short(card.summary_tokens)} tokens, by ${card.summarizer}${card.model ? ` (${card.model})` : ""}`],
    ["instead of", card.fallback_reason || null],
    ["took", [card.duration === null ? null : duration(card.duration), card.cost ? money(card.cost) : null].filter(Boolean).join(", ") || null],
    ["unsaid", card.unsaid.length ? html`of ${card.unsaid.map((/** @type {number} */ version) => html`<button key=${version} class="link mono" onClick=${() => open({ block: `@${version}` })}>@${version}</button> `)}${card.left_out.unsaid ? `and ${counted(card.left_out.unsaid, "earlier prompt")} ` : ""}something asked is neither said nor listed` : null],
  ];
  return html`<dl class="pairs">${rows.filter(([, value]) => value).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** @param {{ data: any, number: number }} props */
function Summary({ data, number }) {
  const [plain, setPlain] = useState(false);
  const { text, digest } = data;
  return html`<section class="summary" aria-label=${`Summary of compaction ${number}`}>
    <div class="content-bar"><h3>Summary, in full</h3><button class="quiet" aria-pressed=${plain} onClick=${() => setPlain(!plain)}>Plain text</button></div>
    ${plain ? html`<pre tabindex="0" role="region" aria-label=${`Text of compaction ${number}`}>${text}</pre>` : html`<${Markdown} text=${text} />`}
    ${data.left_out > 0 && html`<p class="faint">${whole(data.left_out)} characters more; timeline read prints it whole.</p>`}
    <${Digest} digest=${digest} />
  </section>`;
}

/** The record of what was covered, a table a kind. @param {{ digest: Record<string, any> }} props */
function Digest({ digest }) {
  const parts = Object.entries(digest).filter(([, value]) => (Array.isArray(value) ? value.length : value && typeof value === "object" ? Object.keys(value).length : value !== null && value !== "" && value !== 0));
  if (!parts.length) return null;
  return html`<details class="digest"><summary>The record of what was covered</summary>
    <dl>${parts.map(([name, value]) => html`<div key=${name}><dt>${spaced(name)}</dt><dd>${Array.isArray(value) ? html`<ul>${value.slice(0, 200).map((one, place) => html`<li key=${place}>${said(one)}</li>`)}</ul>${value.length > 200 ? `and ${value.length - 200} more` : ""}` : said(value)}</dd></div>`)}</dl>
  </details>`;
}

/** @param {any} value @returns {any} */
function said(value) {
  if (value === null || typeof value !== "object") return String(value);
  const known = value.path ?? value.subject ?? value.command ?? value.name ?? value.text;
  const rest = Object.entries(value).filter(([, one]) => one !== known && one !== null && one !== "" && typeof one !== "object");
  return html`${known !== undefined && html`<span class="mono">${String(known)}</span> `}<span class="faint">${rest.map(([name, one]) => `${spaced(name)} ${one}`).join(", ")}</span>`;
}
