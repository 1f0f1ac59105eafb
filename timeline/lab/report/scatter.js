"use strict";
// Cost against what stays in sight, and against what the model can still know: a point for each policy. Its colour says
// how often a needed file was out of sight.

const SCATTER = { width: 560, height: 380, left: 52, right: 20, top: 26, bottom: 46 };
const NARROWEST = 280;

/** Draw as wide as there is room: a picture that is made smaller has letters that nobody reads. */
function fitScatter(place) {
  const room = place.clientWidth || SCATTER.widest;
  SCATTER.width = Math.round(Math.min(SCATTER.widest, Math.max(NARROWEST, room)));
}
SCATTER.widest = SCATTER.width;

function ticks(least, most, wanted) {
  const rough = (most - least) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const first = Math.ceil(least / step - 1e-9);
  return Array.from({ length: Math.floor(most / step + 1e-9) - first + 1 }, (_, place) => (first + place) * step);
}

/** What an axis spans: a little more than its values do, and never below nothing. */
function span(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const room = 0.18 * (most - least) || 0.1 * most || 1;
  return [Math.max(0, least - room), most + room];
}

function shade(share, most) {
  return `color-mix(in oklab, var(--many) ${Math.round((100 * share) / (most || 1))}%, var(--few))`;
}

/** Find a place for each name where it covers no point and no other name. */
function labels(points) {
  const taken = points.map(({ x, y }) => ({ left: x - 8, right: x + 8, top: y - 8, bottom: y + 8 }));
  const meets = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
  return points.map(({ x, y, name }) => {
    const width = name.length * 7 + 4;
    const tries = [];
    for (const far of [0, 14, 28, 42]) {
      tries.push([x + 14, y + 4 + far, "start"], [x - 14, y + 4 + far, "end"], [x + 14, y + 4 - far, "start"], [x - 14, y + 4 - far, "end"], [x, y - 15 - far, "middle"], [x, y + 23 + far, "middle"]);
    }
    const boxes = tries.map(([at, base, anchor]) => {
      const left = anchor === "start" ? at : anchor === "end" ? at - width : at - width / 2;
      return { at, base, anchor, box: { left, right: left + width, top: base - 11, bottom: base + 3 } };
    });
    const inside = ({ box }) => box.left > SCATTER.left && box.right < SCATTER.width - 2 && box.top > 4 && box.bottom < SCATTER.height - SCATTER.bottom;
    const best = boxes.find((one) => inside(one) && !taken.some((other) => meets(one.box, other))) ?? boxes[0];
    taken.push(best.box);
    return best;
  });
}

const IN_SIGHT = {
  place: "scatter", value: (row) => row.mean_visible, tick: (value) => text.short(value),
  label: "Cost against tokens in sight", axis: "tokens in sight, mean over the calls",
  hint: "Lower is cheaper, further right hides less. Hollow: does not keep to the limit.",
  said: (row) => `${text.whole(row.mean_visible)} tokens in sight, ${row.hidden_needs} of ${row.needs} needed files out of sight`,
};

/** Facts that are not near: those near are in sight under any policy. */
function distant(row) {
  return row.facts_middle + row.facts_far;
}

const RECALL = {
  place: "recall", value: (row) => (distant(row) ? (row.reachable_middle + row.reachable_far) / distant(row) : 0), tick: (value) => text.share(value),
  label: "Cost against recall", axis: "facts in sight or one read away, at middle and far distance",
  hint: "Lower is cheaper, further right knows more. Hollow: does not keep to the limit.",
  said: (row) => `${row.reachable_middle + row.reachable_far} of ${distant(row)} facts in sight or one read away, ${text.total(row.adjusted)} with the reads`,
};

function drawScatters(here) {
  drawScatter(here, IN_SIGHT);
  const measured = here.rows.some(distant);
  document.getElementById("recall").parentElement.hidden = !measured;
  if (measured) drawScatter(here, RECALL);
}

function drawScatter(here, of) {
  fitScatter(document.getElementById(of.place));
  const { width, height, left, right, top, bottom } = SCATTER;
  if (here.rows.length < 2) {
    put(of.place, el("p", {}, "One policy alone was replayed."));
    return;
  }
  const told = here.rows.filter((row) => row.relative !== null && of.value(row) > 0);
  if (!told.length) {
    put(of.place, el("p", {}, "No policy sent a call that another one's cost can be held against."));
    return;
  }
  const kept = told.filter((row) => row.keeps);
  const framing = kept.length > 1 ? kept : told;
  const [leastX, mostX] = span(framing.map(of.value));
  const [leastY, mostY] = span(framing.map((row) => row.relative));
  const outside = (row) => of.value(row) < leastX || of.value(row) > mostX || row.relative < leastY || row.relative > mostY;
  const rows = told.filter((row) => !outside(row));
  const share = (row) => (row.needs ? row.hidden_needs / row.needs : 0);
  const mostShare = Math.max(...rows.map(share));
  const x = (value) => left + ((width - left - right) * (value - leastX)) / (mostX - leastX);
  const y = (value) => height - bottom - ((height - top - bottom) * (value - leastY)) / (mostY - leastY);
  const grid = [
    ...ticks(leastX, mostX, 6).map((value) => [el("line", { x1: x(value), x2: x(value), y1: top, y2: height - bottom }), el("text", { x: x(value), y: height - bottom + 16, "text-anchor": "middle" }, of.tick(value))]),
    ...ticks(leastY, mostY, 6).map((value) => [el("line", { x1: left, x2: width - right, y1: y(value), y2: y(value) }), el("text", { x: left - 7, y: y(value) + 4, "text-anchor": "end" }, String(Number(value.toPrecision(4))))]),
  ].flat();
  const points = rows.map((row) => ({ row, name: row.policy, x: x(of.value(row)), y: y(row.relative) }));
  const named = labels(points);
  const best = here.cheapest === null ? null : here.rows[here.cheapest];
  const said = (row) => `${row.policy}: cost ${text.relative(row.relative)}, ${of.said(row)}${row.keeps ? "" : ", does not keep to the limit"}`;
  const marks = points.map(({ row, x: across, y: down }, place) =>
    el("g", { class: "point" + (row === best ? " best" : "") }, el("title", {}, said(row)),
      row === best ? el("circle", { cx: across, cy: down, r: 10.5, class: "ring" }) : null,
      el("circle", row.keeps
        ? { cx: across, cy: down, r: 6.5, style: { fill: shade(share(row), mostShare) } }
        : { cx: across, cy: down, r: 5.5, style: { fill: "none", stroke: shade(share(row), mostShare), strokeWidth: "2.5" } }),
      el("text", { x: named[place].at, y: named[place].base, "text-anchor": named[place].anchor }, row.policy)));
  const picture = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${of.label}. ${told.map(said).join("; ")}.` },
    el("g", { class: "grid" }, grid),
    el("text", { x: left, y: 14, class: "axis" }, "cost, as a share of the first policy's"),
    el("text", { x: width - right, y: height - 8, "text-anchor": "end", class: "axis" }, of.axis), marks);
  const none = !mostShare;
  put(of.place, el("p", { class: "hint" }, of.hint), picture,
    none ? null : el("p", { class: "scale" }, "Needed files out of sight: 0 %", el("i", { "aria-hidden": "true" }), text.share(mostShare)),
    told.filter(outside).map((row) => el("p", { class: "outside" }, `Outside of the picture: ${said(row)}.`)));
}
