// Views 3 and 7: how full the context was at each call, and the slider through all versions below it, on one scale.

import { clock, percent, short, spaced, whole } from "../pure/format.js";
import { gathered, lastUpTo, stacked, thinned, ticks } from "../pure/stacking.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../parts/page.js";
import { chosen, slide } from "../parts/state.js";
import { sharesIn } from "../parts/words.js";

const HEIGHT = 118;
const LANE = 18;

/** What a mark of the log looks like: a sign of its own, not only a colour. @type {Record<string, [string, string, string]>} */
const MARKS = {
  "compaction.completed": ["▼", "compaction", "compaction"],
  "compaction.failed": ["▲", "a compaction that failed", "error"],
  "compaction.reverted": ["↶", "an undone compaction", "undo"],
  "model.called": ["▲", "a call that failed", "error"],
  "blocks.hidden": ["◐", "hidden blocks", "hide"],
  "blocks.revealed": ["●", "blocks shown again", "reveal"],
  "block.redacted": ["■", "a redaction", "redaction"],
  "blocks.pinned": ["·", "pinned blocks", "other"],
  "blocks.unpinned": ["·", "blocks whose pin was taken off", "other"],
  "policy.changed": ["·", "another policy", "other"],
  "prefix.changed": ["·", "another system prompt", "other"],
  "tools.changed": ["·", "other tools", "other"],
  "stage.entered": ["·", "a stage that began", "other"],
  "stage.approved": ["·", "an approved stage", "other"],
  "stage.rewound": ["·", "a rewound stage", "other"],
  "context.overflowed": ["·", "a context that the model refused", "other"],
};

/** @param {{ row: any, at: number, picked: number | null, points: any[], chart: any }} props */
export function Scrubber({ row, at, picked, points, chart }) {
  const [width, box] = useWidth();
  const first = Math.max(1, row.first_version);
  const last = Math.max(first + 1, row.version);
  const across = (/** @type {number} */ version) => ((version - first) / (last - first)) * width;
  const marks = marksOf(chart);
  const near = chart.loading && at > chart.read ? undefined : points[lastUpTo(points, at, (point) => point.version)];
  const to = (/** @type {number} */ version) => slide({ at: version >= row.version ? null : Math.max(first, version) });
  const dragged = useDrag((x) => to(Math.round(first + (Math.min(Math.max(0, x), width) / Math.max(1, width)) * (last - first))));
  return html`<section class="scrubber" aria-label="Versions">
    <div class="scrubber-head"><${Legend} points=${points} near=${near} /><${Where} at=${at} first=${first} last=${row.version} near=${near} to=${to} points=${points} /></div>
    <div class="plot" ref=${box} ...${dragged}>
      ${width > 0 && html`<${Areas} points=${points} first=${first} last=${last} width=${width} across=${across} failed=${chart.error} loading=${chart.loading} turns=${chart.turns} end=${chart.loading ? Math.min(last, chart.read || last) : last} reading=${chart.read > 0} />`}
      ${chart.loading && chart.read > 0 && html`<${Reading} read=${chart.read} first=${first} last=${last} across=${across} />`}
      ${width > 0 && html`<${Marks} marks=${marks} across=${across} width=${width} />`}
      <i class="cursor" style=${{ transform: `translateX(${across(at)}px)` }}></i>
      ${picked !== null && html`<i class="behind" style=${{ left: `${across(at)}px` }}></i>`}
    </div>
    <${Slider} first=${first} last=${row.version} at=${at} near=${near} to=${to} points=${points} />
  </section>`;
}

/** The marks of the log, and the calls that failed among them. @param {any} chart */
function marksOf(chart) {
  const failed = chart.points.filter((/** @type {any} */ point) => point.failed).map((/** @type {any} */ point) => ({ version: point.version, type: "model.called", text: `call ${point.number} failed` }));
  return failed.length ? [...chart.marks, ...failed].sort((one, other) => one.version - other.version) : chart.marks;
}

/** @returns {[number, { current: HTMLElement | null }]} */
function useWidth() {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const place = /** @type {HTMLElement} */ (box.current);
    setWidth(place.clientWidth);
    const watch = new ResizeObserver(() => setWidth(place.clientWidth));
    watch.observe(place);
    return () => watch.disconnect();
  }, []);
  return [width, box];
}

/** @param {(x: number) => void} moved */
function useDrag(moved) {
  const down = useRef(false);
  const at = (/** @type {PointerEvent} */ event) => moved(event.clientX - /** @type {HTMLElement} */ (event.currentTarget).getBoundingClientRect().left);
  return {
    onPointerDown: (/** @type {PointerEvent} */ event) => {
      if (event.button !== 0) return;
      down.current = true;
      /** @type {HTMLElement} */ (event.currentTarget).setPointerCapture(event.pointerId);
      at(event);
    },
    onPointerMove: (/** @type {PointerEvent} */ event) => down.current && at(event),
    onPointerUp: () => (down.current = false),
    onPointerCancel: () => (down.current = false),
  };
}

/** @param {any} props */
function Areas({ points, first, last, width, across, failed, loading, turns, end, reading }) {
  const drawn = useMemo(() => {
    const kept = thinned(/** @type {any[]} */ (points), first, last, Math.max(40, Math.floor(width / 3)));
    const most = Math.max(1, kept.reduce((high, point) => Math.max(high, point.total, point.limit ?? 0), 0)) * 1.17;
    const up = (/** @type {number} */ tokens) => HEIGHT - (tokens / most) * (HEIGHT - 6);
    const names = sharesIn(kept.map((point) => point.fill)).map((share) => share.name);
    return { most, up, areas: stacked(kept, names, across, up, end), kept, limit: kept.reduce((high, point) => Math.max(high, point.limit ?? 0), 0) };
  }, [points, first, last, end, width]);
  const { most, up, areas, kept, limit } = drawn;
  const newest = kept[kept.length - 1];
  const lower = newest?.trigger && newest.trigger < limit ? newest.trigger : null;
  return html`<svg width=${width} height=${HEIGHT} class="areas" aria-hidden="true">
    ${(points.length ? ticks(most / 1.17) : []).slice(1).filter((value) => value < limit * 0.9 || !limit).filter((value) => !newest?.target || Math.abs(up(value) - 7 - up(newest.target)) > 9).map((value) => html`<g key=${value} class="tick"><line x1="0" x2=${width} y1=${up(value)} y2=${up(value)} /><text x="4" y=${up(value) - 3}>${short(value).replace(".0k", "k")}</text></g>`)}
    ${areas.map((area) => html`<path key=${area.name} class=${`share-${area.name}`} d=${area.path} />`)}
    ${turns.length > 1 && html`<path class="turns" d=${turns.map((/** @type {number} */ version) => `M${Math.round(across(version))} ${HEIGHT}v-5`).join("")} />`}
    ${limit > 0 && [0.8, 0.95].map((share) => html`<g key=${share} class=${`edge edge-${100 * share}`}><line x1=${width - 12} x2=${width} y1=${up(share * limit)} y2=${up(share * limit)} /></g>`)}
    ${newest?.target && newest.target < limit && html`<line class="target-line" x1="0" x2=${width} y1=${up(newest.target)} y2=${up(newest.target)} />`}
    ${limit > 0 && html`<g class="limit"><line x1="0" x2=${width} y1=${up(limit)} y2=${up(limit)} /><text x="4" y=${up(limit) - 4}>limit ${short(limit)}${lower && html`<tspan class="trigger" dx="10">- - compacts above ${short(lower)}</tspan>`}</text></g>`}
    ${lower && html`<g class="trigger"><line x1="0" x2=${width} y1=${up(lower)} y2=${up(lower)} /></g>`}
    ${points.length === 0 && !(loading && reading) && html`<text class="note" x=${width / 2} y=${HEIGHT / 2} text-anchor="middle">${failed ? "The chart could not be read." : loading ? "The chart is loading." : "No context was recorded, so there is nothing to draw."}</text>`}
  </svg>`;
}

/** How far a long log has been read: the part behind it has no figures yet. @param {{ read: number, first: number, last: number, across: (version: number) => number }} props */
function Reading({ read, first, last, across }) {
  const share = (read - first) / (last - first);
  return html`<p class="reading" style=${{ left: `${across(read)}px` }}><span class=${share > 0.5 ? "before" : ""} role="progressbar" aria-label="Reading the log" aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(share * 100)}>Reading the log: ${percent(share)}</span></p>`;
}

/** @param {{ marks: any[], across: (version: number) => number, width: number }} props */
function Marks({ marks, across, width }) {
  const groups = gathered(marks, across, 13);
  return html`<div class="marks" style=${{ height: `${LANE}px` }}>
    ${groups.map(({ x, marks: here }) => {
      const main = here.find((mark) => mark.type === "compaction.completed") ?? here.find((mark) => MARKS[mark.type]?.[2] === "error") ?? here[0];
      const [sign, words, kind] = MARKS[main.type] ?? ["·", spaced(main.type), "other"];
      const several = new Set(here.map((mark) => mark.type)).size > 1;
      const about = here.slice(0, 8).map((mark) => `version ${whole(mark.version)}: ${mark.text}`).join("\n") + (here.length > 8 ? `\nand ${here.length - 8} more` : "");
      return html`<button key=${main.version} class=${`mark mark-${kind}`} style=${{ left: `${Math.min(Math.max(7, x), width - 7)}px` }} title=${about} aria-label=${`${words} at version ${main.version}${here.length > 1 ? `, and ${here.length - 1} more` : ""}`}
        tabindex="-1" onPointerDown=${(/** @type {Event} */ event) => event.stopPropagation()} onClick=${() => slide({ at: main.version })}>${sign}${several ? html`<sup>+</sup>` : ""}</button>`;
    })}
  </div>`;
}

/** @param {{ points: any[], near: any }} props */
function Legend({ points, near }) {
  const shares = useMemo(() => sharesIn(points.map((point) => point.fill)), [points]);
  return html`<div class="legend">
    <h2 class="unseen">Context at each call</h2>
    <ul>${shares.map((share) => html`<li key=${share.name}><i class=${`share-${share.name}`}></i>${share.label}${near ? html` <b>${short(near.fill[share.name] ?? 0)}</b>` : ""}</li>`)}</ul>
  </div>`;
}

/**
 * Where the slider is, and what plays it.
 * @param {{ first: number, last: number, at: number, near: any, to: (version: number) => void, points: any[] }} props
 */
function Where({ first, last, at, near, to, points }) {
  const [playing, setPlaying] = useState(false);
  const now = useRef(at);
  now.current = at;
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setInterval(() => {
      const next = points.find((point) => point.version > now.current)?.version ?? last;
      to(next);
      if (next >= last) setPlaying(false);
    }, 450);
    return () => clearInterval(timer);
  }, [playing, last, points]);
  useEffect(() => {
    const flip = () => setPlaying((before) => !before);
    addEventListener("tl-play", flip);
    return () => removeEventListener("tl-play", flip);
  }, []);
  return html`<div class="where">
    <p><b>${whole(at)}</b> of ${whole(last)}${near ? html`<span class="at-call">call ${whole(near.number)}${near.limit ? ` sent at ${percent(near.total / near.limit)}` : ""}</span><time datetime=${near.at} title=${near.at}>${clock(near.at)}</time>` : ""}</p>
    <button class="quiet play" aria-label=${playing ? "Stop" : "Play"} onClick=${() => (at >= last && to(first), setPlaying(!playing))}>${playing ? "❚❚" : "▶"}</button>
    <button class="quiet newest" disabled=${at >= last} onClick=${() => to(last)}>Newest</button>
  </div>`;
}

/**
 * Where an arrow key leads: one version further, with Shift one call.
 * @param {KeyboardEvent} event @param {number} at @param {any[]} points @param {number} last
 */
export function stepped(event, at, points, last) {
  const forth = event.key === "ArrowRight";
  if (!event.shiftKey) return Math.max(1, at + (forth ? 1 : -1));
  const before = lastUpTo(points, forth ? at : at - 1, (point) => point.version);
  if (forth) return points[before + 1]?.version ?? last;
  return points[before]?.version;
}

/** @param {{ first: number, last: number, at: number, near: any, to: (version: number) => void, points: any[] }} props */
function Slider({ first, last, at, near, to, points }) {
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === " ") dispatchEvent(new Event("tl-play"));
    else if (event.shiftKey && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      to(stepped(event, Math.min(chosen.peek() ?? last, last), points, last) ?? first);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const where = `version ${whole(at)} of ${whole(last)}${near ? `, call ${whole(near.number)}` : ""}`;
  return html`<input class="slider" type="range" aria-label="Version" aria-valuetext=${where} min=${first} max=${last} step="1" value=${at} onInput=${(/** @type {any} */ event) => to(Number(event.target.value))} onKeyDown=${keys} />`;
}
