// View 4: the request of a model call as it was sent, with the state of every block in it, and the proof that it is the same.

import { clock, counted, day, duration, money, percent, shellWord, short, spaced, whole } from "../pure/format.js";
import { lastUpTo } from "../pure/stacking.js";
import { Empty, Shown, useLoaded } from "../parts/loading.js";
import { html, useEffect, useMemo, useState } from "../parts/page.js";
import { Command, Copy, Kind, Marked, State } from "../parts/pieces.js";
import { Rows, preview } from "../parts/rows.js";
import { pathOf, source } from "../parts/source.js";
import { linkTo, open, slide } from "../parts/state.js";

const WIRES = ["anthropic", "openai_chat", "openai_responses", "gemini", "bedrock_converse"];
/** Blocks that are elements before one asks for the rest. */
const FIRST = 60;

/** @param {{ id: string, at: number, points: any[], given: Record<string, string> }} props */
export function CallContext({ id, at, points, given }) {
  const near = points[lastUpTo(points, at, (point) => point.version)];
  const number = near?.number ?? null;
  const form = given.form ?? "blocks";
  if (number === null) {
    return html`<${Empty} title="No call was recorded up to this version">
      <p>${points.length ? html`The first one is at version <button class="link" onClick=${() => slide({ at: points[0].version })}>${whole(points[0].version)}</button>.` : "A call is recorded with timeline.record(reply, request=…). Until then the command line renders the context of any version:"}</p>
      ${!points.length && html`<${Command} text=${`timeline render ${shellWord(id)} --at ${at} --explain`} />`}
    <//>`;
  }
  return html`<div class="call">
    <${CallHead} key=${`${id} head`} id=${id} number=${number} points=${points} />
    <div class="choice" role="group" aria-label="Form of the request">
      ${[["blocks", "Blocks and why"], ["request", "As sent"], ["body", "JSON"]].map(([name, label]) => html`<button key=${name} aria-pressed=${form === name} onClick=${() => slide({ form: name === "blocks" ? null : name })}>${label}</button>`)}
      ${form !== "blocks" && html`<label class="wire">Wire <select value=${given.wire ?? ""} onChange=${(/** @type {any} */ event) => slide({ wire: event.target.value })}><option value="">as it was sent</option>${WIRES.map((wire) => html`<option key=${wire} value=${wire}>${spaced(wire)}</option>`)}</select></label>`}
    </div>
    ${form === "body" ? html`<${Body} id=${id} number=${number} wire=${given.wire ?? ""} query=${given.query ?? ""} />` : html`<${Sent} id=${id} number=${number} wire=${given.wire ?? ""} form=${form} query=${given.query ?? ""} open=${given.block} />`}
  </div>`;
}

/** @param {{ id: string, number: number, points: any[] }} props */
function CallHead({ id, number, points }) {
  const found = useLoaded(pathOf(id, `calls/${number}`), {}, id, 60);
  const place = points.findIndex((point) => point.number === number);
  const to = (/** @type {number} */ next) => points[next] && slide({ at: points[next].version });
  return html`<div class="call-head">
    <div class="call-title">
      <button class="quiet" disabled=${place <= 0} onClick=${() => to(place - 1)} aria-label="The call before">‹</button>
      <h2>Call ${whole(number)}</h2>
      <button class="quiet" disabled=${place + 1 >= points.length} onClick=${() => to(place + 1)} aria-label="The next call">›</button>
    </div>
    <${Shown} answer=${found} of=${`Call ${number}`} lines=${2}>${(/** @type {any} */ data) => html`<${CallFacts} found=${data} />`}<//>
  </div>`;
}

/** @param {{ found: any }} props */
function CallFacts({ found }) {
  const { call } = found;
  const used = call.usage;
  const sent = used.input_tokens + used.cache_read_tokens + used.cache_write_5m_tokens + used.cache_write_1h_tokens;
  const same = found.verdict === "same";
  return html`<p class="call-facts">
      <span class="mono">${call.model || "no model named"}</span><span>${call.wire ? spaced(call.wire) : "the request was not recorded"}</span><time datetime=${call.at}>${day(call.at)} ${clock(call.at)}</time>
      ${sent > 0 && html`<span>${short(sent)} in, ${percent(used.cache_read_tokens / sent)} of it from cache</span><span>${short(used.output_tokens)} out</span>`}
      ${found.cost !== null && html`<span>${money(found.cost)}</span>`}${call.duration !== null && html`<span>${duration(call.duration)}</span>`}
      ${call.error && html`<strong class="bad">${call.error}</strong>`}
    </p>
    <p class=${same ? "proof same" : "proof"}><b><i aria-hidden="true">${same ? "✓" : "?"}</i> ${same ? "Byte for byte what was sent." : "Not proved."}</b> ${found.verdict_in_words}${call.sha256 ? html` <span class="mono hash" title=${call.sha256}>sha256 ${call.sha256.slice(0, 12)}…</span>` : ""}</p>
    ${(call.decisions?.length > 0 || call.cause) && html`<ul class="before">
      ${(call.decisions ?? []).map((/** @type {any} */ decision) => html`<li key=${decision.version}>Before it, at <a href=${linkTo("log", { at: decision.version, block: null })}>@${decision.version}</a>: ${decision.text}</li>`)}
      ${call.cause && html`<li>Cache: ${call.cause.text}</li>`}
    </ul>`}`;
}

/** @param {{ id: string, number: number, wire: string, form: string, query: string, open: string | undefined }} props */
function Sent({ id, number, wire, form, query, open: opened }) {
  const found = useLoaded(pathOf(id, `calls/${number}/context`), { wire }, id, 60);
  return html`<${Shown} answer=${found} of="The context of this call" lines=${8}>${(/** @type {any} */ data) =>
    form === "request" ? html`<${Pieces} pieces=${data.pieces} query=${query} />` : html`<${Blocks} id=${id} explanation=${data.explanation} query=${query} opened=${opened} />`}<//>`;
}

/** @param {{ id: string, explanation: any, query: string, opened: string | undefined }} props */
function Blocks({ id, explanation, query, opened }) {
  const [all, setAll] = useState(false);
  const [, again] = useState(0);
  const rows = useMemo(() => new Rows(id, () => again((times) => times + 1), Infinity), [id]);
  useEffect(() => () => rows.stop(), [rows]);
  const blocks = all ? explanation.blocks : explanation.blocks.slice(0, FIRST);
  rows.move(explanation.version, explanation.version);
  useEffect(() => rows.want(blocks.map((/** @type {any} */ block) => block.version - 1)), [explanation, all]);
  const points = new Map(explanation.cache_points.map((/** @type {any} */ point) => [point.path, point]));
  return html`<${Outside} id=${id} version=${explanation.version} /><ol class="blocks" aria-label="Blocks of the context, in their order">
    ${blocks.map((/** @type {any} */ block) => html`<li key=${block.version} class=${`sent-block in-${block.state}${opened === `@${block.version}` ? " opened" : ""}`}>
      <button class="link mono" onClick=${() => open({ block: `@${block.version}` })}>@${block.version}</button>
      <${Kind} type=${block.type} name=${rows.row(block.version)?.tool && block.type === "react.tool.call" ? rows.row(block.version).tool : undefined} />
      <span class="sent-why"><span class="sent-text"><${Marked} text=${preview(rows.row(block.version))} query=${query} /></span><span class="sent-reason"><span class="mono path">${block.path}</span> ${block.rule === "window" ? "" : block.reason}</span></span>
      <span class="row-tokens" title=${block.shown_tokens === block.tokens ? "" : `of ${whole(block.tokens)}`}>${whole(block.shown_tokens)}</span>
      <${State} state=${block.state} />
      ${points.has(block.path) && html`<span class="cache-point" title=${points.get(block.path).reason}>⌃ cache point: ${spaced(points.get(block.path).kind)}</span>`}
    </li>`)}
    ${explanation.blocks.length > blocks.length && html`<li><button class="further" onClick=${() => setAll(true)}>Show the other ${whole(explanation.blocks.length - blocks.length)} blocks</button></li>`}
  </ol>`;
}

/** What the context does not show in full, in one line. @param {{ id: string, version: number }} props */
function Outside({ id, version }) {
  const found = useLoaded(pathOf(id, "state"), { at: version }, `${id} ${version}`);
  const states = Object.entries(found.data?.states ?? {}).filter(([state]) => !["visible", "carried"].includes(state));
  return html`<p class="outside">${found.data === null ? " " : states.length ? html`Not sent in full: ${states.map(([state, there]) => html`<span key=${state}><${State} state=${state} /> ${counted(/** @type {any} */ (there).blocks, "block")} of ${short(/** @type {any} */ (there).tokens)} tokens </span>`)}` : "Everything up to here is sent in full."}</p>`;
}

/** @param {{ pieces: any[], query: string }} props */
function Pieces({ pieces, query }) {
  const [most, setMost] = useState(30);
  return html`<ol class="pieces" aria-label="The request, piece by piece">
    ${pieces.slice(0, most).map((piece) => html`<li key=${piece.place} class=${`piece role-${piece.role ?? "none"}`}>
      <p class="piece-head"><b>${piece.role ?? spaced(piece.place)}</b> <span class="mono faint">${piece.place}</span></p>
      <pre tabindex="0" role="region" aria-label=${piece.place}><${Marked} text=${laidOut(piece)} query=${query} /></pre>
      ${piece.left_out > 0 && html`<p class="faint">${counted(piece.left_out, "character")} more; JSON shows all of it.</p>`}
    </li>`)}
    ${pieces.length > most && html`<li><button class="further" onClick=${() => setMost(most + 100)}>Show ${whole(Math.min(100, pieces.length - most))} more of ${whole(pieces.length)}</button></li>`}
  </ol>`;
}

/** Whole JSON is laid out; a piece of one is as it is. @param {any} piece */
function laidOut(piece) {
  if (piece.left_out) return piece.text;
  try {
    return texts(JSON.parse(piece.text));
  } catch (problem) {
    if (problem instanceof SyntaxError) return piece.text;
    throw problem;
  }
}

/** A message as a person reads it: its texts as they are, everything else as JSON. @param {any} value @returns {string} */
function texts(value) {
  if (typeof value === "string") return value;
  const parts = value?.content ?? value?.parts;
  if (typeof parts === "string") return parts;
  if (Array.isArray(parts)) return parts.map((part) => (typeof part?.text === "string" ? part.text : JSON.stringify(part, null, 2))).join("\n\n");
  return JSON.stringify(value, null, 2);
}

/** @param {{ id: string, number: number, wire: string, query: string }} props */
function Body({ id, number, wire, query }) {
  const path = pathOf(id, `calls/${number}/body`);
  const found = useLoaded(path, { wire }, `${id} ${number} ${wire}`, 60);
  const [more, setMore] = useState({ of: "", text: "", next: /** @type {number | null} */ (null) });
  useEffect(() => setMore({ of: "", text: "", next: null }), [path, wire]);
  return html`<${Shown} answer=${found} of="The body of this call" lines=${10}>${(/** @type {any} */ data) => {
    const text = data.text + more.text;
    const next = more.text ? more.next : data.next_offset;
    const further = async () => {
      const piece = await source.now.get(path, { wire, offset: next });
      setMore({ of: path, text: more.text + piece.text, next: piece.next_offset });
    };
    return html`<div class="body">
      <div class="content-bar"><span class="faint">${next === null ? counted(data.characters, "character") : `${short(next)} of ${short(data.characters)} characters`}</span><${Copy} text=${text} label="Copy JSON" />${next === null && html`<${Copy} text=${curl(data.wire, text)} label="Copy as curl" />`}</div>
      <pre tabindex="0" role="region" aria-label="Body of the request"><${Marked} text=${text} query=${query} /></pre>
      ${next !== null && html`<button class="further" onClick=${further}>Read on: ${short(data.characters - next)} more</button>`}
    </div>`;
  }}<//>`;
}

/** @type {Record<string, [string, string]>} */
const ADDRESSES = {
  anthropic: ["https://api.anthropic.com/v1/messages", '-H "x-api-key: $ANTHROPIC_API_KEY" -H "anthropic-version: 2023-06-01"'],
  openai_chat: ["https://api.openai.com/v1/chat/completions", '-H "Authorization: Bearer $OPENAI_API_KEY"'],
  openai_responses: ["https://api.openai.com/v1/responses", '-H "Authorization: Bearer $OPENAI_API_KEY"'],
};

/** @param {string} wire @param {string} body */
function curl(wire, body) {
  const [address, key] = ADDRESSES[wire] ?? ['"$URL"', '-H "Authorization: Bearer $KEY"'];
  return `curl ${address} ${key} -H "content-type: application/json" --data-binary @- <<'BODY'\n${body}\nBODY`;
}
