"use strict";
// The recordings, and the calls of one of them under each policy that is shown: what was sent, and what happened to it.

/** What may happen at a call, a lane each above the plot. */
const LANES = [
  { name: "broke", colour: (run, call) => "cause-" + figures.causes[run.cause[call] - 1], has: (run, call) => run.collapsed[call] },
  { name: "summary", colour: () => "summaries", has: (run, call) => run.compactions[call] },
  { name: "hides", colour: () => "cause-hide", has: (run, call) => run.hidden[call] },
  { name: "missed", colour: () => "many", has: (run, call) => run.hidden_needs[call] },
];
const LANE = 15;
let charts = [];
let readouts = [];
let chosenCall = null;

function drawRecordings(state) {
  const here = figures.limits[state.limit];
  const names = here.rows.map((row) => row.policy);
  const rows = figures.recordings.map((recording, place) => {
    const units = names.map((name) => here.runs.find((run) => run.recording === place && figures.policies[run.policy] === name)?.cost);
    const link = el("a", { id: `recording-${place}`, title: titleOf(place), href: choices.link({ recording: place }), "aria-current": place === state.recording ? "true" : null }, titleOf(place));
    return [link, strip(runOf(here, figures.policies.indexOf(state.second), place), state.second), recording.subagent ? "subagent" : "", text.time(recording.start), text.whole(recording.at.length),
      ...units.map((value) => (units[0] && value !== undefined ? (value / units[0]).toFixed(3) : "–"))];
  });
  put("recordings", table({
    caption: "Recordings, and the cost of each under each policy", heads: ["recording", ["the cache broke", el("br"), el("small", {}, state.second)], "", "began (UTC)", "calls", ...names], kind: "recordings",
    numbers: [4, ...names.map((_, place) => place + 5)], rows, marked: [state.recording],
  }));
}

/** When the cache broke in a recording: a mark for each such call, first to last, in the colour of its cause. */
function strip(run, policy) {
  if (!run) return "";
  const broke = run.collapsed.flatMap((collapsed, call) => (collapsed ? [call] : []));
  const cause = (call) => figures.causes[run.cause[call] - 1];
  const said = broke.map((call) => `${call + 1} (${text.cause(cause(call))})`).join(", ");
  return el("svg", { class: "strip", viewBox: "0 0 150 16", role: "img", "aria-label": broke.length ? `With ${policy} the cache broke at call ${said}` : `With ${policy} the cache never broke` },
    el("title", {}, broke.length ? `call ${said}` : "the cache never broke"),
    el("rect", { x: 0, y: 7.5, width: 150, height: 1, style: { fill: "var(--edge)" } }),
    broke.map((call) => el("rect", { x: 147 * (call / Math.max(1, run.read.length - 1)), y: 2, width: 3, height: 12, style: { fill: `var(--cause-${cause(call).replaceAll("_", "-")})` } })));
}

/** What happened at a call, in words. */
function happened(run, call) {
  if (run.refused[call]) return `refused: ${run.refused[call]}`;
  const cause = run.cause[call] ? text.cause(figures.causes[run.cause[call] - 1]) : "";
  return [
    run.compactions[call] ? `${text.counted(run.compactions[call], "summary", "summaries")} of ${text.short(run.covered_tokens[call])} tokens${run.splits[call] ? ", cut inside a turn" : ""}` : "",
    run.hidden[call] ? `${text.counted(run.hidden[call], "block")} hidden` : "",
    cause ? `${run.collapsed[call] ? "cache broke" : "cache lost some"}, ${text.short(run.lost[call])} tokens: ${cause}` : "",
    run.hidden_needs[call] ? `${run.hidden_needs[call]} of ${text.counted(run.needs[call], "needed file")} out of sight` : "",
    run.over_limit[call] ? "above the limit" : "",
  ].filter(Boolean).join("; ");
}

function readout(run, recording, call) {
  if (call === null || call === undefined || run.read[call] === undefined) return "Point at a call to read it, or go there with the arrow keys; drag to enlarge, double-click to go back.";
  const sent = run.refused[call] ? "" : `${text.whole(run.tokens[call])} tokens: read ${text.whole(run.read[call])}, written ${text.whole(run.written[call])}, uncached ${text.whole(run.uncached[call])}; cost ${text.cost(run.paid[call])}`;
  return [`Call ${call + 1}, ${text.time(timeOf(recording, call))}`, sent, happened(run, call)].filter(Boolean).join(" · ");
}

/** Draw what happened above the plot, a lane for each kind; calls that were refused; the limit, where it is in reach. */
function drawLanes(plot, run, limit) {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  const [least, most] = [plot.scales.x.min, plot.scales.x.max];
  ctx.save();
  ctx.font = `${12 * scale}px system-ui, sans-serif`;
  ctx.textBaseline = "middle";
  const mark = scale * Math.max(3, Math.min(8, bbox.width / scale / (most - least) - 1));
  LANES.forEach((lane, place) => {
    const middle = bbox.top - (LANES.length - place - 0.5) * LANE * scale - 3 * scale;
    ctx.textAlign = "right";
    ctx.fillStyle = colour("faint");
    ctx.fillText(lane.name, bbox.left - 6 * scale, middle);
    ctx.fillStyle = colour("line");
    ctx.fillRect(bbox.left, middle - scale / 2, bbox.width, scale);
    for (let call = Math.max(0, Math.ceil(least) - 1); call < Math.min(run.read.length, most); call++) {
      if (!lane.has(run, call)) continue;
      ctx.fillStyle = colour(lane.colour(run, call));
      ctx.fillRect(plot.valToPos(call + 1, "x", true) - mark / 2, middle - 4 * scale, mark, 8 * scale);
    }
  });
  ctx.fillStyle = colour("refused");
  run.refused.forEach((refused, call) => {
    if (!refused || call + 1.5 < least || call + 0.5 > most) return;
    const [left, right] = [Math.max(least, call + 0.5), Math.min(most, call + 1.5)].map((value) => Math.round(plot.valToPos(value, "x", true)));
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
  });
  ctx.strokeStyle = colour("text");
  ctx.lineWidth = scale;
  const line = (dash, x1, y1, x2, y2) => {
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x2, y2);
    ctx.stroke();
  };
  if (limit < plot.scales.y.max) {
    const height = plot.valToPos(limit, "y", true);
    line([5 * scale, 4 * scale], bbox.left, height, bbox.left + bbox.width, height);
  }
  if (chosenCall !== null && chosenCall + 1 >= least && chosenCall + 1 <= most) {
    const across = plot.valToPos(chosenCall + 1, "x", true);
    line([], across, bbox.top - LANES.length * LANE * scale, across, bbox.top + bbox.height);
  }
  ctx.restore();
}

function chart(run, recording, state, most, said) {
  const limit = figures.limits[state.limit].limit;
  const calls = run.read.map((_, call) => call + 1);
  const cached = run.read.map((read, call) => read + run.written[call]);
  const paths = uPlot.paths.bars({ size: [1, Infinity], gap: 0 });
  const series = (name) => ({ label: name, fill: colour(name), stroke: colour(name), width: 0, paths, points: { show: false } });
  const axis = { stroke: colour("faint"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width: 600, height: 260, legend: { show: false }, padding: [LANES.length * LANE + 8, 20, 0, 0],
    cursor: { sync: { key: "calls", setSeries: false }, points: { show: false }, y: false, drag: { x: true, y: false, dist: 4 } },
    scales: { x: { time: false, range: (_, least, top) => [Math.max(0.5, least - 0.5), Math.min(calls.length + 0.5, top + 0.5)] }, y: { range: [0, most * 1.04] } },
    axes: [{ ...axis, size: 28, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] }, { ...axis, size: 56, values: (_, values) => values.map(text.short) }],
    series: [{}, series("uncached"), series("written"), series("read")],
    hooks: {
      draw: [(plot) => drawLanes(plot, run, limit)],
      setCursor: [(plot) => { said.textContent = readout(run, recording, plot.cursor.idx ?? chosenCall); }],
    },
    data: [calls, run.tokens, cached, run.read],
  };
}

function eventList(run, recording, state) {
  const listed = run.read.flatMap((_, call) => (LANES.some((lane) => lane.has(run, call)) || run.refused[call] ? [call] : []));
  if (!listed.length) return el("p", { class: "hint" }, "Nothing was hidden, summarised or lost.");
  const list = el("details", {}, el("summary", {}, text.counted(listed.length, "call") + " at which something happened"));
  list.addEventListener("toggle", () => {
    if (!list.open || list.children.length > 1) return;
    list.append(table({
      caption: "Calls at which something happened", heads: ["call", "time (UTC)", "what"], kind: "events",
      rows: listed.map((call) => [el("a", { href: choices.link({ ...state, call }) }, String(call + 1)), text.time(timeOf(recording, call)), happened(run, call)]),
    }));
  });
  return list;
}

function described(name, run) {
  const count = (lane) => run.read.filter((_, call) => lane.has(run, call)).length;
  const refused = run.refused.filter(Boolean).length;
  const [broke, written, hides, missed] = LANES.map(count);
  return `${name}: tokens sent at each of ${text.counted(run.read.length, "call")}, at most ${text.short(Math.max(...run.tokens))}. The cache broke at ${broke}, summaries were written before ${written}, blocks hidden before ${hides}, needed files out of sight at ${missed}${refused ? `, ${text.counted(refused, "call")} refused` : ""}. The list below says where.`;
}

function drawCharts(state) {
  for (const plot of charts) plot.destroy();
  charts = [];
  chosenCall = state.call;
  const here = figures.limits[state.limit];
  const recording = figures.recordings[state.recording];
  const shown = here.rows.map((row) => row.policy).filter((name) => state.show.includes(name));
  const toggles = here.rows.map(({ policy }, place) => el("label", { class: "toggle" }, el("input", {
    type: "checkbox", id: `show-${place}`, value: policy, checked: shown.includes(policy),
    onchange: (event) => choices.change({ show: event.target.checked ? [...state.show, policy] : state.show.filter((name) => name !== policy), call: state.call }),
  }), policy));
  const keys = ["read", "written", "uncached"].map((name) => el("span", { class: "key" }, el("i", { style: { background: `var(--${name})` }, "aria-hidden": "true" }), name));
  put("chosen", el("p", { class: "recording" }, titleOf(state.recording)),
    el("fieldset", {}, el("legend", {}, "Side by side"), toggles), el("p", { class: "keys" }, keys, el("span", { class: "key" }, el("i", { style: { background: "var(--refused)" }, "aria-hidden": "true" }), "refused"), el("span", {}, "- - the limit"), el("span", {}, "above: the cache broke (coloured by cause), a summary was written, blocks were hidden, a needed file was out of sight")));
  const runs = shown.map((name) => runOf(here, figures.policies.indexOf(name), state.recording)).map((run, place) => [shown[place], run]).filter(([, run]) => run);
  const most = Math.max(1, ...runs.flatMap(([, run]) => [Math.max(...run.tokens)]));
  const boxes = runs.map(([name, run]) => {
    const said = el("p", { class: "readout" }, readout(run, recording, state.call));
    const frame = el("div", {
      class: "frame", role: "slider", tabindex: "0", "aria-label": described(name, run), "aria-valuemin": 1, "aria-valuemax": run.read.length,
      onkeydown: (event) => stepTo(event, run.read.length),
    });
    return { run, frame, said, box: el("figure", {}, el("figcaption", {}, el("b", {}, name), ` ${text.total(run.cost)}`), frame, said, eventList(run, recording, state)) };
  });
  readouts = runs.map(([, run]) => (call) => readout(run, recording, call));
  put("charts", boxes.map((one) => one.box));
  sayCall();
  for (const { run, frame, said } of boxes) {
    const { data, ...options } = chart(run, recording, state, most, said);
    charts.push(new uPlot({ ...options, width: frame.clientWidth || 600 }, data, frame));
    frame.addEventListener("click", () => { // the end of a drag is none: uPlot keeps it to itself
      const call = charts.find((plot) => plot.root.parentNode === frame)?.cursor.idx;
      if (call !== null && call !== undefined) choices.change({ call });
    });
  }
}

/** Mark a call in the charts that are there: what was enlarged stays so. */
function markCall(call) {
  chosenCall = call;
  for (const plot of charts) plot.redraw(false);
  sayCall();
}

/** Say what the chosen call is, below each chart and to who does not see it. */
function sayCall() {
  document.querySelectorAll("#charts .readout").forEach((said, place) => { said.textContent = readouts[place](chosenCall); });
  document.querySelectorAll("#charts .frame").forEach((frame, place) => {
    frame.setAttribute("aria-valuenow", (chosenCall ?? 0) + 1);
    frame.setAttribute("aria-valuetext", chosenCall === null ? "no call chosen" : readouts[place](chosenCall));
  });
}

/** The arrow keys go from call to call, Home and End to the first and the last one. */
function stepTo(event, calls) {
  const { call } = choices.read(); // a key that is held is faster than the charts are
  const steps = { ArrowLeft: (call ?? 1) - 1, ArrowRight: (call ?? -1) + 1, Home: 0, End: calls - 1 };
  if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  choices.change({ call: Math.max(0, Math.min(calls - 1, steps[event.key])) });
}

function fitCharts() {
  for (const plot of charts) plot.setSize({ width: plot.root.parentNode.clientWidth, height: plot.height });
}
