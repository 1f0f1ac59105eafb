// View 2: the log, a row a version. Only the rows near the screen are elements; ranges are read as they are scrolled to.

import { brief, clock, duration, short, whole } from "../pure/format.js";
import { Heights } from "../pure/heights.js";
import { follow, physicalHeight, settle } from "../pure/scrolling.js";
import { Empty, Failed } from "../parts/loading.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../parts/page.js";
import { Kind, State } from "../parts/pieces.js";
import { Rows, preview } from "../parts/rows.js";
import { open, slide } from "../parts/state.js";
import { typeOf } from "../parts/words.js";

/** A row that was never drawn counts as this high. */
const ESTIMATE = 46;
/** Rows that are elements at one time. */
const MOST = 90;
/** Kinds that the focused log shows. */
const FOCUSED = new Set(["user", "assistant", "summary"]);

/** @param {{ id: string, row: any, at: number, picked: number | null, given: Record<string, string> }} props */
export function Log({ id, row, at, picked, given }) {
  const [, again] = useState(0);
  const draw = () => again((times) => times + 1);
  const rows = useMemo(() => new Rows(id, draw), [id]);
  useEffect(() => () => rows.stop(), [rows]);
  rows.move(at, row.version);
  const focused = given.only === "talk";
  const list = useList(row.version, focused);
  const { heights, box } = list;
  const drawn = list.rows();
  const active = useActive(list, at, picked, given.block);
  // The row with the focus stays, wherever one scrolls; one that is filtered out gives its place to the first that is not.
  if (!drawn.includes(active.version - 1) && active.version <= row.version && heights.own[active.version - 1] > 0) drawn.push(active.version - 1);
  drawn.sort((one, other) => one - other);
  const focusable = drawn.includes(active.version - 1) ? active.version : (drawn[0] ?? 0) + 1;
  useLayoutEffect(() => {
    list.measure((version) => rows.row(version), focused);
  });
  useEffect(() => {
    const timer = setTimeout(() => rows.want(list.rows()), list.fast() ? 90 : 0);
    return () => clearTimeout(timer);
  });
  if (row.version === 0) return html`<${Empty} title="Nothing was appended yet"><p>Rows appear here as the application appends them.</p><//>`;
  if (rows.error && rows.row(heights.rowAt(list.place.current.logical) + 1) === undefined) return html`<${Failed} error=${rows.error} of="The log" />`;
  const turn = turnAbove(rows, heights.rowAt(list.place.current.logical + 1) + 1);
  return html`<div class="log">
    <div class="log-head">
      <${TurnHead} turn=${turn} />
      <label class="toggle"><input type="checkbox" checked=${focused} onChange=${() => slide({ only: focused ? null : "talk" })} /> Prompts and answers only</label>
    </div>
    <div class="log-box" ref=${box} role="grid" aria-label="Log" aria-rowcount=${row.version} aria-colcount="1" onScroll=${(/** @type {any} */ event) => (list.scrolled(event.target.scrollTop), draw())} onKeyDown=${(/** @type {KeyboardEvent} */ event) => active.key(event, rows)}>
      <div class="log-high" role="presentation" style=${{ height: `${physicalHeight(heights.total)}px` }}>
        ${drawn.map((number) => html`<${Row} key=${number} version=${number + 1} found=${rows.row(number + 1)} at=${at} top=${list.topOf(number)} current=${picked !== null && number + 1 === at} active=${number + 1 === focusable} open=${given.block === `@${number + 1}`} onActive=${active.set} />`)}
      </div>
    </div>
  </div>`;
}

/** The list's place and heights, and what follows from them. @param {number} count @param {boolean} focused */
function useList(count, focused) {
  const heights = useMemo(() => new Heights(count, ESTIMATE), [focused]);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const place = useRef({ physical: 0, logical: 0 });
  const [view, setView] = useState(600);
  const last = useRef({ time: 0, step: 0 });
  const [, again] = useState(0);
  const settled = useRef(0);
  useLayoutEffect(() => {
    const here = /** @type {HTMLElement} */ (box.current);
    if (!here) return undefined;
    setView(here.clientHeight);
    const watch = new ResizeObserver(() => setView(here.clientHeight));
    watch.observe(here);
    return () => watch.disconnect();
  }, []);
  const atEnd = useRef(false);
  const viewed = useRef(view);
  if (viewed.current !== view) {
    atEnd.current = heights.total > viewed.current && place.current.logical + viewed.current >= heights.total - 4;
    viewed.current = view;
  }
  if (heights.count !== count) {
    atEnd.current ||= heights.count > 0 && place.current.logical + view >= heights.total - 4 && heights.total > view;
    heights.resize(count);
  }
  const go = (/** @type {number} */ logical) => {
    place.current = settle(logical, heights.total, view);
    if (box.current) box.current.scrollTop = place.current.physical;
    place.current.physical = box.current?.scrollTop ?? place.current.physical;
    again((times) => times + 1);
  };
  useLayoutEffect(() => {
    if (atEnd.current) {
      atEnd.current = false;
      go(heights.total);
    }
  });
  return {
    heights,
    box,
    place,
    view,
    rows: () => heights.span(place.current.logical, view, MOST),
    topOf: (/** @type {number} */ row) => place.current.physical + heights.offset(row) - place.current.logical,
    fast: () => performance.now() - last.current.time < 120 && Math.abs(last.current.step) > view,
    go,
    scrolled(/** @type {number} */ physical) {
      const before = place.current;
      last.current = { time: performance.now(), step: physical - before.physical };
      place.current = follow(before, physical, heights.total, view);
      clearTimeout(settled.current);
      settled.current = setTimeout(() => {
        const rest = settle(place.current.logical, heights.total, view);
        if (Math.abs(rest.physical - place.current.physical) > 1) go(place.current.logical);
      }, 250);
    },
    /** Take up the heights of what was drawn; what is seen stays where it is, and the end of the log stays the end. @param {(version: number) => any} known @param {boolean} only */
    measure(known, only) {
      const here = box.current;
      if (!here) return;
      const anchor = heights.rowAt(place.current.logical + 1);
      const inside = place.current.logical - heights.offset(anchor);
      const ended = heights.total > view && place.current.logical + view >= heights.total - 4;
      let changed = false;
      for (const element of here.querySelectorAll("[data-version]")) {
        const version = Number(element.getAttribute("data-version"));
        const found = known(version);
        if (found === undefined) continue;
        const height = found === null || (only && !FOCUSED.has(typeOf(found.type).kind)) ? 0 : /** @type {HTMLElement} */ (element).offsetHeight;
        changed = heights.set(version - 1, height) !== 0 || changed;
      }
      if (!changed) return;
      const end = Math.max(0, heights.total - view);
      const logical = ended ? end : Math.min(heights.offset(anchor) + Math.min(inside, Math.max(0, heights.own[anchor] - 1)), end);
      const by = logical - place.current.logical;
      place.current = { ...place.current, logical };
      const rest = settle(logical, heights.total, view);
      if (Math.abs(by) > 0.5 || Math.abs(rest.physical - place.current.physical) > 2 * view) {
        /** @type {HTMLElement} */ (here.firstElementChild).style.height = `${physicalHeight(heights.total)}px`;
        here.scrollTop = rest.physical;
        place.current = { logical, physical: here.scrollTop };
      }
      again((times) => times + 1);
    },
    /** Bring a row into view. @param {number} row @param {boolean} gently only as far as it takes */
    show(row, gently = true) {
      const top = heights.offset(row);
      const bottom = top + Math.max(heights.own[row] ?? ESTIMATE, 1);
      const from = place.current.logical;
      if (top >= from && bottom <= from + view) return;
      if (!gently) go(top - view / 3);
      else go(top < from ? top : Math.min(bottom - view, top));
    },
  };
}

/**
 * The row that has the focus, and the keys that move it. Until there is one it is the newest, or the slider's.
 * @param {ReturnType<typeof useList>} list @param {number} at @param {number | null} picked @param {string | undefined} block
 */
function useActive(list, at, picked, block) {
  const [version, setVersion] = useState(/** @type {number | null} */ (null));
  const wanted = useRef(/** @type {number | null} */ (null));
  useEffect(() => {
    // The slider moved, or the log was opened: its row is seen. A log that grows leaves its reader where they are.
    if (at > 0) list.show(at - 1, false);
    setVersion(picked);
  }, [picked]);
  useEffect(() => {
    const found = /^@(\d+)$/.exec(block ?? "");
    if (!found) return;
    setVersion(Number(found[1]));
    list.show(Number(found[1]) - 1, false);
  }, [block]);
  const within = () => list.box.current?.contains(document.activeElement) ?? false;
  const had = within();
  useLayoutEffect(() => {
    // A row that is moved among others loses the focus.
    const lost = had && !within();
    if (wanted.current === null && !lost) return;
    const row = list.box.current?.querySelector(wanted.current === null ? "[tabindex='0']" : `[data-version="${wanted.current}"]`);
    if (row) {
      wanted.current = null;
      /** @type {HTMLElement} */ (row).focus({ preventScroll: true });
    }
  });
  const to = (/** @type {number} */ next) => {
    const inside = Math.min(Math.max(1, next), list.heights.count);
    wanted.current = inside;
    setVersion(inside);
    list.show(inside - 1);
  };
  const step = (/** @type {number} */ by) => {
    let next = (version ?? at) + by;
    while (next > 1 && next < list.heights.count && list.heights.own[next - 1] === 0) next += by;
    to(next);
  };
  return {
    version: version === null ? at : version,
    set: setVersion,
    /** @param {KeyboardEvent} event @param {Rows} rows */
    key(event, rows) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const here = version ?? at;
      if (event.key === "ArrowDown" || event.key === "j") step(1);
      else if (event.key === "ArrowUp" || event.key === "k") step(-1);
      else if (event.key === "PageDown") to(list.heights.rowAt(list.heights.offset(here - 1) + list.view) + 1);
      else if (event.key === "PageUp") to(list.heights.rowAt(Math.max(0, list.heights.offset(here - 1) - list.view)) + 1);
      else if (event.key === "Home") to(1);
      else if (event.key === "End") to(list.heights.count);
      else if (event.key === "]" || event.key === "[") turned(rows, here, event.key === "]" ? 1 : -1, to);
      else if (event.key === "Enter" || event.key === " ") {
        if (rows.row(here)?.path) open({ block: `@${here}` });
      } else return;
      event.preventDefault();
    },
  };
}

/** Go to the first row of the next turn, or of this one, as far as it is loaded. @param {Rows} rows @param {number} from @param {number} step @param {(version: number) => void} to */
function turned(rows, from, step, to) {
  const begins = [...rows.turns.kept.values()].map((turn) => turn.version).sort((one, other) => one - other);
  const next = step > 0 ? begins.find((version) => version > from) : begins.filter((version) => version < from).pop();
  if (next !== undefined) to(next);
}

/** @param {Rows} rows @param {number} version */
function turnAbove(rows, version) {
  for (let back = version; back > Math.max(0, version - 40); back -= 1) {
    const row = rows.row(back);
    if (row?.turn_id) return rows.turns.get(row.turn_id) ?? null;
  }
  return null;
}

/** @param {{ turn: any }} props */
function TurnHead({ turn }) {
  return html`<p class="turn-head">${turn ? html`<b>${turn.id.replace("_", " ")}</b> <span>${brief(turn.text, 140)}</span>` : html`<span> </span>`}</p>`;
}

/** @param {{ version: number, found: any, at: number, top: number, current: boolean, active: boolean, open: boolean, onActive: (version: number) => void }} props */
function Row({ version, found, at, top, current, active, open: opened, onActive }) {
  const { kind } = typeOf(found?.type ?? "");
  const state = version > at ? "not_yet" : (found?.state ?? "");
  const block = Boolean(found?.path);
  const names = ["log-row", block ? "of-block" : found ? "of-event" : "", `is-${kind}`, state && `in-${state}`, current && "current", opened && "opened", found === undefined && "waiting", (found?.failed || found?.orphan) && "with-error"];
  const pick = () => {
    onActive(version);
    if (block) open({ block: `@${version}` });
  };
  return html`<div class=${names.filter(Boolean).join(" ")} role="row" aria-rowindex=${version} aria-selected=${opened} aria-current=${current ? "step" : null} data-version=${version} tabindex=${active ? 0 : -1} style=${{ transform: `translateY(${top}px)` }} onClick=${pick} onFocus=${() => onActive(version)}>
    <div role="gridcell" class="log-cell">
      ${found === undefined ? html`<span class="row-version">${whole(version)}</span><i class="ghost"></i>` : found === null ? "" : block ? html`<${BlockRow} found=${found} state=${state} />` : html`<${EventRow} found=${found} />`}
    </div>
  </div>`;
}

/** @param {{ found: any, state: string }} props */
function BlockRow({ found, state }) {
  return html`<span class="row-version">${whole(found.version)}</span>
    <${Kind} type=${found.type} name=${found.tool && found.type === "react.tool.call" ? found.tool : undefined} />
    <span class="row-text">${preview(found) || html`<em>no text</em>`}${found.left_out ? html`<span class="left-out"> … ${short(found.left_out)} more</span>` : ""}${found.orphan ? html` <strong class="bad">${found.type === "react.tool.call" ? "no result" : "no call"}</strong>` : ""}</span>
    <span class="row-tokens" title=${found.shown_tokens !== null && found.shown_tokens !== found.tokens ? `${whole(found.shown_tokens)} of them are sent` : ""}>${whole(found.tokens)}</span>
    <${State} state=${state} />`;
}

/** @param {{ found: any }} props */
function EventRow({ found }) {
  return html`<span class="row-version">${whole(found.version)}</span>
    <span class="row-event">${typeOf(found.type).label}${found.text ? html` <span>${brief(found.text, 160)}</span>` : ""}</span>
    <span class="row-tokens">${found.duration === null || found.duration === undefined ? "" : duration(found.duration)}</span><time class="row-time" datetime=${found.at}>${clock(found.at)}</time>`;
}
