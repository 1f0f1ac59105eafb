// View 5: one block, in full, and why it is as it is at the version that is looked at.

import { bytes, clock, counted, day, percent, shellWord, short, spaced, whole } from "../pure/format.js";
import { lastUpTo } from "../pure/stacking.js";
import { Loading, Shown, useLoaded } from "../parts/loading.js";
import { html, useEffect, useRef, useState } from "../parts/page.js";
import { Command, Copy, Kind, Marked, State } from "../parts/pieces.js";
import { Markdown } from "../parts/markdown.js";
import { pathOf, source } from "../parts/source.js";
import { linkTo, open, slide } from "../parts/state.js";
import { stateOf } from "../parts/words.js";
import { DecideBlock, ForkFrom } from "./fork.js";

/** @param {{ id: string, block: string, at: number, version: number, points: any[], query: string }} props */
export function BlockPanel({ id, block, at, version, points, query }) {
  const found = useLoaded(pathOf(id, `blocks/${encodeURIComponent(block)}`), {}, `${id} ${block}`);
  const listed = /\.(paths|names)$/.test(block) && (found.data === null || Boolean(found.data.list_of)); // a list has no state
  const why = useLoaded(listed ? null : pathOf(id, "why"), { block, at }, `${id} ${block}`, 60);
  const panel = useFocusGivenBack();
  const title = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => title.current?.focus({ preventScroll: true }), [block]);
  const near = points[lastUpTo(points, at, (point) => point.version)];
  const close = () => open({ block: null });
  return html`<aside class="panel" aria-labelledby="panel-title" ref=${panel}>
    <div class="panel-head">
      <h2 id="panel-title" tabindex="-1" ref=${title}>${found.data ? html`<${Kind} type=${found.data.type} /> <span class="mono">${found.data.address}</span>` : html`<span class="mono">${block}</span>`}</h2>
      ${query && html`<button class="quiet" onClick=${close}>Back to what was found</button>`}
      <button class="quiet close" aria-label="Close the block" onClick=${close}>✕</button>
    </div>
    <div class="panel-body">
      ${!listed && html`<${Shown} answer=${why} of="The reason for its state" lines=${3}>${(/** @type {any} */ data) => html`<${Because} id=${id} why=${data.why} near=${near} version=${version} />`}<//>`}
      <${Shown} answer=${found} of="The block" lines=${6}>${(/** @type {any} */ data) => html`<${Content} id=${id} found=${data} query=${query} />`}<//>
      ${!listed && html`<${DecideBlock} key=${`decide ${block}`} id=${id} address=${block} possible=${why.data?.decisions ?? []} at=${at} version=${version} />`}
      ${!listed && html`<${ForkFrom} id=${id} at=${at} />`}
    </div>
  </aside>`;
}

/** A panel that goes, however it is closed, gives the focus back to what opened it, else to the log's row. */
function useFocusGivenBack() {
  const panel = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const opener = document.activeElement;
    return () => {
      if (!panel.current?.contains(document.activeElement)) return;
      requestAnimationFrame(() => {
        const back = opener?.isConnected && opener !== document.body ? opener : document.querySelector(".log-row[tabindex='0']");
        /** @type {HTMLElement | null} */ (back)?.focus({ preventScroll: true });
      });
    };
  }, []);
  return panel;
}

/** @param {{ id: string, why: any, near: any, version: number }} props */
function Because({ id, why, near, version }) {
  const where = why.at_version === version ? "now" : `at version ${whole(why.at_version)}`;
  const call = near && near.version >= why.at_version - 1 ? `, call ${whole(near.number)}` : "";
  return html`<section class="because" aria-label="Why">
    <p class="verdict"><${State} state=${why.state} /> <span>${stateOf(why.state).about}</span> <span class="faint">${where}${call}</span></p>
    ${why.in_words && html`<p class="reason"><${Sentence} id=${id} why=${why} /></p>`}
    ${why.since_version !== null && why.since_version !== undefined && html`<p class="faint">Since <a href=${linkTo("log", { at: why.since_version })}>version ${whole(why.since_version)}</a>${why.since_at ? `, ${day(why.since_at)} ${clock(why.since_at)}` : ""}.</p>`}
    ${why.shown_as && why.shown_as.text && html`<div class="shown-as"><h3>${why.shown_as.kind === "abridged" ? "Shown abridged" : "Shown in its place"}</h3><p><button class="link mono" onClick=${() => open({ block: why.shown_as.address })}>${why.shown_as.address}</button> ${why.shown_as.text}</p></div>`}
    ${why.retold?.length > 0 && html`<${Retold} id=${id} retold=${why.retold} />`}
    ${why.ways_back?.length > 0 && html`<details class="ways"><summary>How to bring it back</summary>${why.ways_back.map((/** @type {any} */ way, /** @type {number} */ place) => html`<${Command} key=${place} text=${wayBack(id, way)} />`)}</details>`}
  </section>`;
}

/** What decided, as a sentence: of a covered block the compaction by its number, and the turn that it cut. @param {{ id: string, why: any }} props */
function Sentence({ id, why }) {
  const covered = why.state === "covered" && why.compaction_number !== null;
  const found = useLoaded(covered ? pathOf(id, `compactions/${why.since_version}`) : null, {}, `${id} ${why.since_version}`);
  if (!covered) return why.in_words;
  const turn = found.data?.compaction.split_turn_id;
  return html`<b>Covered by <a href=${linkTo("compactions", { compaction: why.since_version })}>compaction ${why.compaction_number}</a>${turn ? `, cut inside ${spaced(turn)}` : ""}.</b> <span class="faint">${why.in_words}</span>`;
}

/** What the summaries kept of the block, one after the other. @param {{ id: string, retold: any[] }} props */
function Retold({ id, retold }) {
  const first = retold[0];
  const last = retold[retold.length - 1];
  return html`<div class="retold">
    <h3>What its summaries say of it</h3>
    <ol>${retold.map((one) => html`<li key=${one.address}>
      <span class="retold-row"><a class="mono" href=${linkTo("compactions", { compaction: one.address.replace(/\D/g, "") })}>#${one.compaction_number}</a>
        <span class="meter" role="img" aria-label=${`${one.words} of ${one.of} words`}><i style=${{ width: `${one.of ? (100 * one.words) / one.of : 0}%` }}></i></span>
        <span>${whole(one.words)} of ${whole(one.of)} words</span></span>
      ${one.lost && html`<p class="lost"><b>lost:</b> <q>${one.lost}</q></p>`}
    </li>`)}</ol>
    ${retold.length > 1 && html`<a href=${linkTo("compactions", { compaction: last.address.replace(/\D/g, ""), beside: first.address.replace(/\D/g, "") })}>Show the first summary beside the newest</a>`}
  </div>`;
}

/** @param {string} id @param {any} way */
function wayBack(id, way) {
  const name = shellWord(id);
  if (way.kind === "undo") return `timeline undo ${name} --version ${(way.address ?? "").replace("@", "")}${(way.compactions ?? 0) > 1 || way.compactions?.length > 1 ? " --cascade" : ""}`;
  if (way.kind === "backup") return `timeline restore BACKUP`;
  return `timeline ${way.kind} ${name} ${way.address ?? ""}`;
}

/** A list of names, each line behind the block that has them. @param {{ text: string }} props */
function Listed({ text }) {
  return html`<div class="listed" tabindex="0" role="region" aria-label="List of names">${text.split("\n").map((line, place) => {
    const [said, address, names] = /^(@[0-9]+): (.*)$/.exec(line) ?? [line, "", ""];
    return address ? html`<p key=${place}><button class="link mono" onClick=${() => open({ block: address })}>${address}</button> <span class="mono">${names}</span></p>` : html`<p key=${place} class="faint">${said}</p>`;
  })}</div>`;
}

/** @param {{ id: string, found: any, query: string }} props */
function Content({ id, found, query }) {
  const [more, setMore] = useState({ of: "", text: "", next: /** @type {number | null} */ (null) });
  const mine = more.of === found.address ? more : { of: found.address, text: "", next: found.next_offset };
  const further = async () => {
    const piece = await source.now.get(pathOf(id, `blocks/${encodeURIComponent(found.address)}`), { offset: mine.next });
    setMore({ of: found.address, text: mine.text + piece.text, next: piece.next_offset });
  };
  const text = found.text + mine.text;
  const prose = !found.list_of && ["assistant.completion", "conv.range.summary", "user.prompt", "note", "stage.digest", "assistant.reasoning"].includes(found.type) && !query && text.length < 100_000;
  const [plain, setPlain] = useState(false);
  const data = Object.entries(found.block ?? {}).filter(([name, value]) => value !== null && value !== "" && !["type", "path", "text", "id"].includes(name) && !(typeof value === "object" && Object.keys(value).length === 0));
  return html`<section class="content" aria-label="Content">
    <dl class="pairs">
      <div><dt>path</dt><dd class="mono">${found.path}</dd></div>
      <div><dt>appended</dt><dd><a href=${linkTo("log", { at: found.version })}>version ${whole(found.version)}</a>, <time datetime=${found.at}>${day(found.at)} ${clock(found.at)}</time></dd></div>
      ${found.partner && html`<div><dt>${found.type === "react.tool.call" ? "result" : "call"}</dt><dd><button class="link mono" onClick=${() => open({ block: found.partner })}>${found.partner}</button></dd></div>`}
    </dl>
    <div class="content-bar"><span class="faint">${mine.next === null ? counted(found.characters, "character") : `${short(mine.next)} of ${short(found.characters)} characters`}</span>
      ${prose && html`<button class="quiet" aria-pressed=${plain} onClick=${() => setPlain(!plain)}>Plain text</button>`}<${Copy} text=${text} /></div>
    ${found.lists?.length > 0 && html`<p>Before it: ${found.lists.map((/** @type {string} */ name) => html`<button key=${name} class="link" onClick=${() => open({ block: name })}>${name.endsWith(".paths") ? "all paths" : "all names"}</button> `)}</p>`}
    ${found.list_of && html`<p>Everything before <button class="link mono" onClick=${() => open({ block: found.list_of })}>${found.list_of}</button>, read from the log as it is now.</p><${Listed} text=${text} />`}
    ${found.list_of ? null : text ? (prose && !plain ? html`<${Markdown} text=${text} />` : html`<pre tabindex="0" role="region" aria-label="Text of the block"><${Marked} text=${text} query=${query} /></pre>`) : html`<p class="faint">It has no text.</p>`}
    ${mine.next !== null && html`<button class="further" onClick=${further}>Read on: ${short(found.characters - mine.next)} more</button>`}
    ${data.length > 0 && html`<details class="fields"><summary>Other fields</summary><pre tabindex="0" role="region" aria-label="Fields of the block">${JSON.stringify(Object.fromEntries(data), null, 2)}</pre></details>`}
    ${Object.entries(found.left_out ?? {}).map(([name, size]) => html`<p key=${name} class="faint">${name}: ${bytes(Number(size))}, not shown here; timeline read prints it.</p>`)}
  </section>`;
}
