// A conversation: what is at a glance above, the slider through its versions, and one of its views below.

import { ago, brief, duration, money, percent, short, spaced, whole } from "../pure/format.js";
import { VIEWS, writeAddress } from "../pure/address.js";
import { compactedAt } from "../pure/compacted.js";
import { lastUpTo, scaled, summed } from "../pure/stacking.js";
import { Failed, Loading, useLoaded } from "../parts/loading.js";
import { html, useEffect, useRef, useState, useValue } from "../parts/page.js";
import { Gauge } from "../parts/pieces.js";
import { pathOf, returns, source } from "../parts/source.js";
import { address, chosen, go, linkTo, open, slide } from "../parts/state.js";
import { BlockPanel } from "./block.js";
import { CacheLane } from "./cache.js";
import { Compactions } from "./compactions.js";
import { CallContext } from "./context.js";
import { Diff } from "./diff.js";
import { Export } from "./export.js";
import { Family } from "./family.js";
import { SearchHere } from "./search.js";
import { Lab } from "./lab.js";
import { Live } from "./live.js";
import { Log } from "./log.js";
import { Scrubber, stepped } from "./scrubber.js";
import { WhatIf } from "./what-if.js";

/** @type {Record<string, [string, any]>} */
const SHOWN = {
  log: ["Log", Log],
  context: ["Context", CallContext],
  compactions: ["Compactions", Compactions],
  diff: ["Diff", Diff],
  family: ["Family", Family],
  cache: ["Cache", CacheLane],
  "what-if": ["What if", WhatIf],
  lab: ["Lab", Lab],
  live: ["Live", Live],
  export: ["Export", Export],
};

/** The views that there are of what is looked at: of one version alone, those that ask for nothing before it. */
const views = () => (source.now.moment ? ["log", "compactions"] : VIEWS);

/** Seconds of the first slice of the chart, and of those behind it: so long nothing new is seen of a long log. */
const FIRST_SLICE = 0.3;
const SLICE = 1;

/** How often the newest version is asked for while the page is looked at, in milliseconds. */
const FRESH = 3000;

/** @param {{ id: string }} props */
export function Conversation({ id }) {
  const [grown, setGrown] = useState(0);
  const found = useLoaded(pathOf(id), { _seen: grown || null }, id);
  const chart = useChart(id, found.data?.conversation.version ?? 0);
  useGrowth(id, found.data?.conversation.version ?? 0, setGrown);
  useEffect(() => {
    document.title = found.data ? `${brief(found.data.conversation.title || id, 60)} · timeline` : "timeline";
  }, [found.data, id]);
  if (found.error) {
    return html`<${Crumbs} title=${id} /><${Failed} error=${found.error} of=${`The conversation ${id}`} />`;
  }
  if (found.data === null) return html`<${Crumbs} title=${id} /><${Loading} of="The conversation" lines=${8} />`;
  return html`<${Open} id=${id} found=${found.data} chart=${chart} />`;
}

/**
 * Ask whether the log has grown, as long as somebody looks.
 * @param {string} id @param {number} known @param {(version: number) => void} grown
 */
function useGrowth(id, known, grown) {
  useEffect(() => {
    if (!source.now.live || !known) return undefined;
    const stop = new AbortController();
    let asking = false; // a slow server is asked one question at a time
    const timer = setInterval(async () => {
      if (document.hidden || asking) return;
      asking = true;
      try {
        const now = await source.now.get(pathOf(id, "blocks"), { after: known, limit: 1 }, stop.signal);
        if (now.version !== known) grown(now.version);
      } catch (problem) {
        // Nobody answered: the line above the page says so. Anything else is an answer that the views show themselves.
        if (![0, 401, 403, undefined].includes(/** @type {any} */ (problem).status)) returns.value += 1;
      } finally {
        asking = false;
      }
    }, FRESH);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [id, known]);
}

/**
 * The calls and marks of the chart, slice after slice as the log is read; of a log that grew only what is new. `read` is
 * the version up to which it was read.
 * @param {string} id @param {number} version
 */
function useChart(id, version) {
  const [chart, setChart] = useState({ points: /** @type {any[]} */ ([]), marks: /** @type {any[]} */ ([]), turns: /** @type {number[]} */ ([]), error: /** @type {any} */ (null), loading: true, read: 0 });
  const again = useValue(returns);
  useEffect(() => {
    if (!version) return undefined;
    const stop = new AbortController();
    const gather = async () => {
      const points = [...chart.points];
      let { read } = chart;
      for (let after = points[points.length - 1]?.number ?? 0; after !== null; ) {
        const page = await source.now.get(pathOf(id, "chart"), { after, limit: 5000, wait: read ? SLICE : FIRST_SLICE, _seen: `${version} ${read}` }, stop.signal);
        points.push(...page.points.map(pointOf));
        after = page.next_after;
        read = page.read_until ?? version;
        setChart({ points: [...points], marks: page.marks, turns: page.turn_versions ?? [], error: null, loading: after !== null, read });
      }
    };
    gather().catch((error) => stop.signal.aborted || setChart((before) => ({ ...before, error, loading: false })));
    return () => stop.abort();
  }, [id, version, again]);
  return chart;
}

/** A call of the chart as a point of the stacked areas: what the log counts, and the fixed part around it. @param {any} call */
function pointOf(call) {
  const shares = scaled(call.by_role, call.ratio);
  const window = summed(shares);
  const total = call.total ?? (call.sent_tokens || window);
  const fixed = Math.max(0, total - window);
  return { ...call, total, fixed, fill: { fixed, ...shares } };
}

/** @param {{ title: string, row?: any }} props */
function Crumbs({ title, row = null }) {
  return html`<div class="crumbs">
    ${!source.now.moment && html`<a href="#/">Conversations</a><span aria-hidden="true">/</span>`}
    <h1 title=${title}>${title}</h1>
    ${row && html`<${Facts} row=${row} />`}
  </div>`;
}

/** @param {{ row: any }} props */
function Facts({ row }) {
  const parent = row.parent?.conversation;
  return html`<p class="facts">
    ${row.title && html`<span class="mono">${row.id}</span>`}
    ${parent && html`<a href=${writeAddress({ conversation: parent, view: "", given: { at: row.parent.version ?? "" } })}>↳ ${spaced(row.parent.relation ?? "fork")} of ${parent}${row.parent.version ? ` at ${whole(row.parent.version)}` : ""}</a>`}
    ${row.policy && html`<span>${row.policy.name}</span>`}
    <time datetime=${row.updated_at} title=${row.updated_at}>${ago(row.updated_at, Date.now())}</time>
  </p>`;
}

/** @param {{ id: string, found: any, chart: any }} props */
function Open({ id, found, chart }) {
  const { view, given } = useValue(address);
  const row = found.conversation;
  const picked = useValue(chosen);
  const at = picked === null ? row.version : Math.min(picked, row.version);
  const { points } = chart;
  // Behind what was read so far nothing is known yet of calls and figures.
  const behind = chart.loading && at > chart.read;
  useKeys(row, points, chart.marks);
  useCallOfAddress(given.call, points);
  const compacted = useCompacted(id, found, picked === null || at === row.version ? null : at);
  const [, View] = SHOWN[view] ?? SHOWN.log;
  const block = given.block;
  return html`<div class=${block || given.query ? "talk-page with-panel" : "talk-page"}>
    <${Crumbs} title=${row.title || id} row=${row} />
    <${Strip} id=${id} found=${found} at=${at} points=${points} picked=${picked} behind=${behind} compacted=${compacted} />
    ${!source.now.moment && html`<${Scrubber} row=${row} at=${at} picked=${picked} points=${points} chart=${chart} />`}
    <${Tabs} view=${view} compactions=${compacted?.count ?? 0} />
    <div class="below">
      <section class="view" role="tabpanel" id="view" aria-labelledby=${`tab-${view}`}><${View} key=${view} id=${id} row=${row} found=${found} at=${at} picked=${picked} points=${points} given=${given} /></section>
      ${block
        ? html`<${BlockPanel} key="panel" id=${id} block=${block} at=${at} version=${row.version} points=${points} query=${given.query ?? ""} />`
        : given.query && html`<${SearchHere} key="found" id=${id} query=${given.query} kind=${given.kind ?? ""} at=${at} />`}
    </div>
  </div>`;
}

/** A link to a call is one to its version. @param {string | undefined} call @param {any[]} points */
function useCallOfAddress(call, points) {
  useEffect(() => {
    const point = call && points.find((one) => String(one.number) === call);
    if (point) slide({ at: point.version, call: null });
  }, [call, points]);
}

/**
 * The compactions that there were at a version: how many, and the newest; null until they are known.
 * @param {string} id @param {any} found @param {number | null} at null for the newest version
 */
function useCompacted(id, found, at) {
  const row = found.conversation;
  const listed = useLoaded(at !== null && row.compactions ? pathOf(id, "compactions") : null, { _seen: row.version }, id);
  if (at === null) return { count: row.compactions, newest: found.newest_compaction };
  if (!row.compactions) return { count: 0, newest: null };
  return listed.data && compactedAt(listed.data.compactions, at);
}

/** @param {{ id: string, found: any, at: number, points: any[], picked: number | null, behind: boolean, compacted: any }} props */
function Strip({ id, found, at, points, picked, behind, compacted }) {
  const state = useLoaded(behind ? null : pathOf(id, "state"), { at }, id, picked === null ? 0 : 80);
  const row = found.conversation;
  const near = behind ? null : points[lastUpTo(points, at, (point) => point.version)];
  // While the slider moves, the nearest call is shown; the exact state follows as soon as it stops.
  const exact = state.data?.version === at ? state.data : null;
  const limit = exact?.limit ?? near?.limit ?? row.limit ?? 0;
  const fixed = near?.fixed ?? exact?.fixed ?? 0;
  const shares = exact && scaled(exact.by_role, exact.ratio);
  const fill = shares ? { fixed, ...shares } : (near?.fill ?? {});
  const total = shares ? fixed + summed(shares) : (near?.total ?? (picked === null ? (row.tokens ?? 0) : 0));
  const now = exact?.limit ? exact : near;
  const gone = !near && state.error?.kind === "history-unavailable"; // what lies before the window was removed
  return html`<div class="strip">
    <div class="card">
      <h2>Context${picked === null ? "" : ` at ${whole(at)}`}</h2>
      ${gone ? html`<p class="figure"><b>–</b> <span>this version cannot be seen any more</span></p>` : behind && total === 0 ? html`<p class="figure"><b>…</b> <span>the log is being read</span></p>` : html`<p class="figure"><b>${limit ? percent(total / limit) : short(total)}</b> <span>${limit ? `${short(total)} of ${short(limit)} tokens` : "tokens; no limit is known"}</span></p>`}
      ${!gone && html`<${Gauge} fill=${fill} total=${total} limit=${limit} trigger=${now?.trigger ?? null} target=${now?.target ?? null} />`}
    </div>
    <${Compacted} found=${compacted} picked=${picked} />
    ${!source.now.moment && html`<${Called} id=${id} found=${found} picked=${picked} point=${picked === null ? null : near} behind=${behind} /><${Health} remarks=${found.remarks} picked=${picked} />`}
  </div>`;
}

/** @param {{ found: { count: number, newest: any } | null, picked: number | null }} props */
function Compacted({ found, picked }) {
  if (!found) return html`<div class="card"><h2>Compactions by then</h2><p class="figure"><b>…</b> <span>they are being read</span></p></div>`;
  const { count, newest } = found;
  const then = picked === null ? "" : " by then";
  if (!count) {
    return html`<div class="card"><h2>Compactions${then}</h2><p class="figure"><b>0</b> <span>nothing was summarised</span></p><p class="line faint">The model saw every block, or its replacement.</p></div>`;
  }
  return html`<div class="card">
    <h2>Compactions${then}</h2>
    <p class="figure"><b>${whole(count)}</b> <span>${newest ? `newest ${ago(newest.at, Date.now())}` : "undone"}</span></p>
    ${newest && html`<p class="line"><a href=${linkTo("compactions", { compaction: newest.version })}>#${newest.compaction_number}: ${short(newest.before_tokens)} → ${short(newest.after_tokens)}</a>${newest.saved_share !== null ? `, ${percent(newest.saved_share)} less` : ""}</p>`}
  </div>`;
}

/** @param {{ id: string, found: any, picked: number | null, point: any, behind: boolean }} props */
function Called({ id, found, picked, point, behind }) {
  const one = useLoaded(point ? pathOf(id, "calls") : null, point ? { after: point.number - 1, limit: 1 } : {}, id, 80);
  const call = point ? one.data?.calls[0] : picked === null ? found.newest_call : null;
  const cost = point ? one.data?.costs[0] : found.newest_call_cost;
  if (!call && !point && picked !== null && found.newest_call) {
    return html`<div class="card"><h2>Last call by then</h2><p class="figure"><b>${behind ? "…" : "–"}</b> <span>${behind ? "the log is being read" : "none was made yet"}</span></p></div>`;
  }
  if (!call) {
    return html`<div class="card"><h2>Last call</h2>
      ${point ? html`<p class="figure"><b>#${whole(point.number)}</b></p>` : html`<p class="figure"><b>–</b> <span>no call is recorded</span></p><p class="line faint">timeline.record(reply, request=…) records one.</p>`}
    </div>`;
  }
  const used = call.usage;
  const sent = used.input_tokens + used.cache_read_tokens + used.cache_write_5m_tokens + used.cache_write_1h_tokens;
  return html`<div class="card">
    <h2>${point ? "Call" : "Last call"} ${whole(call.number)}</h2>
    <p class="figure"><b>${cost === null || cost === undefined ? short(sent) : money(cost)}</b> <span>${cost === null || cost === undefined ? "tokens sent" : `${short(sent)} in, ${short(used.output_tokens)} out`}</span></p>
    <p class="line"><a href=${linkTo("context", { at: call.version })}>what it was sent</a>${sent ? `, ${percent(used.cache_read_tokens / sent)} from cache` : ""}${call.duration === null ? "" : `, ${duration(call.duration)}`}${call.error ? html`, <strong class="bad">failed</strong>` : ""}</p>
  </div>`;
}

/** What is wrong with the conversation as it is now, whichever version is looked at. @param {{ remarks: any[], picked: number | null }} props */
function Health({ remarks, picked }) {
  const title = picked === null ? "Health" : "Health now";
  const wrong = remarks.filter((one) => one.level === "warning");
  const [first] = [...wrong, ...remarks];
  if (!first) {
    return html`<div class="card"><h2>${title}</h2><p class="figure"><b class="well"><i aria-hidden="true">✓</i> fine</b></p><p class="line faint">Nothing failed, nothing was lost.</p></div>`;
  }
  return html`<div class=${wrong.length ? "card wrong" : "card"}>
    <h2>${title}</h2>
    <p class="figure"><b><i aria-hidden="true">${wrong.length ? "▲" : "ℹ"}</i> ${wrong.length ? `${whole(wrong.length)} to look at` : `${whole(remarks.length)} to know`}</b></p>
    <details class="line"><summary>${first.text}</summary>
      <ul>${remarks.map((one, place) => html`<li key=${place}>${one.text} ${one.version ? html`<a href=${linkTo("log", { at: one.version })}>version ${whole(one.version)}</a>` : ""}</li>`)}</ul>
    </details>
  </div>`;
}

/** @param {{ view: string, compactions: number }} props */
function Tabs({ view, compactions }) {
  const strip = useRef(/** @type {HTMLElement | null} */ (null));
  // On a phone the strip is wider than the window: the open view's tab comes into its middle, and the page stays.
  useEffect(() => {
    const tab = document.getElementById(`tab-${view}`);
    if (strip.current && tab) strip.current.scrollLeft = tab.offsetLeft - strip.current.offsetLeft - (strip.current.clientWidth - tab.offsetWidth) / 2;
  }, [view]);
  const chosenTab = (/** @type {KeyboardEvent} */ event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const names = views();
    const next = names[(names.indexOf(view) + step + names.length) % names.length];
    go({ ...address.peek(), view: next });
    document.getElementById(`tab-${next}`)?.focus();
  };
  return html`<div class="tabs-row">
    <div class="tabs" ref=${strip} role="tablist" aria-label="Views" onKeyDown=${chosenTab}>
      ${views().map((name) => html`<a key=${name} id=${`tab-${name}`} role="tab" href=${linkTo(name)} aria-selected=${name === view} aria-controls="view" tabindex=${name === view ? 0 : -1}>${SHOWN[name][0]}${name === "compactions" && compactions ? html` <b class="count">${compactions}</b>` : ""}</a>`)}
    </div>
    <${Find} />
  </div>`;
}

function Find() {
  const { given } = useValue(address);
  return html`<input id="find" class="find" type="search" placeholder="Search this conversation" aria-label="Search this conversation" autocomplete="off" spellcheck=${false} value=${given.query ?? ""}
    onInput=${(/** @type {any} */ event) => slide({ query: event.target.value, block: null })}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") slide({ query: null });
      if (event.key === "Enter" || event.key === "ArrowDown") {
        event.preventDefault();
        /** @type {HTMLElement | null} */ (document.querySelector(".found-row"))?.focus();
      }
    }} />`;
}

/** @param {any} row @param {any[]} points @param {any[]} marks */
function useKeys(row, points, marks) {
  useEffect(() => {
    const seen = (/** @type {KeyboardEvent} */ event) => {
      const on = /** @type {HTMLElement} */ (event.target);
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (on.closest("input:not([type=range]):not([type=checkbox]), textarea, select, dialog")) return;
      // What the address says, not what was drawn last: keys may come faster than frames.
      const at = Math.min(chosen.peek() ?? row.version, row.version);
      const tab = views()[(Number(event.key) + 9) % 10];
      const compactions = marks.filter((mark) => mark.type === "compaction.completed").map((mark) => mark.version);
      if (tab && /^\d$/.test(event.key)) go({ ...address.peek(), view: tab });
      else if (event.key === "Escape" && address.peek().given.block) open({ block: null });
      else if (event.key === "c") to(compactions.find((version) => version > at));
      else if (event.key === "C") to(compactions.filter((version) => version < at).pop());
      else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !on.closest("[role=tablist], input, pre, [role=grid]")) {
        to(stepped(event, at, points, row.version));
      } else return;
      event.preventDefault();
    };
    const to = (/** @type {number | undefined} */ version) => version !== undefined && slide({ at: version >= row.version ? null : Math.max(1, version) });
    addEventListener("keydown", seen);
    return () => removeEventListener("keydown", seen);
  }, [row, points, marks]);
}
