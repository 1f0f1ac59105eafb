"use strict";
// Two policies held against each other, call by call: what each sends, what it costs, and why the dearer one is dearer.

const SORTS = {
  recording: (one, other) => one.recording - other.recording || one.call - other.call,
  call: (one, other) => one.call - other.call || one.recording - other.recording,
  difference: (one, other) => Math.abs(other.cost) - Math.abs(one.cost),
};
const STEP = 100;
const view = { sort: "difference", rows: STEP };

/** The same rule as `timeline.lab.differences` has. */
function reasonOf(dear, cheap, call) {
  if (cheap.refused[call]) return "refused";
  if ((dear.summary[call] - cheap.summary[call]) * 2 > dear.spent[call] - cheap.spent[call]) return "summary";
  if (dear.cause[call] && dear.lost[call] > cheap.lost[call]) return figures.causes[dear.cause[call] - 1];
  return dear.read[call] < cheap.read[call] ? "cold" : "size";
}

const REASONS = { refused: "the other refuses", summary: "summary written", size: "longer context", cold: "less was cached", ...CAUSES };

function differencesOf(state) {
  const here = figures.limits[state.limit];
  const policies = [state.first, state.second].map((name) => figures.policies.indexOf(name));
  return figures.recordings.flatMap((_, recording) => {
    if (state.only && recording !== state.recording) return [];
    const [first, second] = policies.map((policy) => runOf(here, policy, recording));
    if (!first || !second) return [];
    return first.read.flatMap((_cost, call) => {
      const cost = second.paid[call] - first.paid[call];
      return cost ? [{ recording, call, cost, first, second, reason: cost < 0 ? reasonOf(first, second, call) : reasonOf(second, first, call) }] : [];
    });
  });
}

function drawPair(state) {
  const names = figures.limits[state.limit].rows.map((row) => row.policy);
  if (names.length < 2) {
    put("pair");
    return;
  }
  const choose = (label, key) => el("label", {}, label, el("select", { id: key, onchange: (event) => choices.change({ [key]: event.target.value }) },
    names.map((name) => el("option", { value: name, selected: name === state[key] }, name))));
  put("pair", el("p", { class: "choose" }, choose("Compare ", "second"), choose(" with ", "first"),
    el("label", { class: "toggle" }, el("input", { type: "checkbox", id: "only", checked: state.only, onchange: (event) => choices.change({ only: event.target.checked }) }), `only ${titleOf(state.recording)}`)));
}

function reasonSums(found, state) {
  const sums = new Map();
  for (const { reason, cost } of found) {
    const sum = sums.get(reason) ?? { dearer: 0, more: 0, cheaper: 0, less: 0 };
    if (cost > 0) { sum.dearer += 1; sum.more += cost; } else { sum.cheaper += 1; sum.less += cost; }
    sums.set(reason, sum);
  }
  const total = found.reduce((sum, one) => sum + one.cost, 0);
  const most = Math.max(...[...sums.values()].map((sum) => Math.max(sum.more, -sum.less)));
  const amount = (value) => text.signed(value, (size) => (figures.cost_in === "money" ? text.money(size, most) : text.short(size)));
  const rows = [...sums].sort(([, one], [, other]) => other.more - other.less - one.more + one.less)
    .map(([reason, sum]) => [REASONS[reason], sum.cheaper ? text.whole(sum.cheaper) : "–", sum.less ? amount(sum.less) : "–", sum.dearer ? text.whole(sum.dearer) : "–", sum.more ? amount(sum.more) : "–"]);
  return [
    el("p", { class: "total" }, el("b", {}, state.second), ` costs ${text.total(Math.abs(total))} ${total > 0 ? "more" : "less"} than `, el("b", {}, state.first), ` over ${text.counted(found.length, "call")} that cost differently.`),
    table({ caption: "Differences by cause", heads: ["why the dearer call costs more", `${state.second} cheaper at`, "by", `${state.second} dearer at`, "by"], numbers: [1, 2, 3, 4], rows, kind: "reasons" }),
  ];
}

function sortHead(name, label, state) {
  const chosen = view.sort === name;
  return el("button", { type: "button", id: `sort-${name}`, "aria-pressed": String(chosen), onclick: () => { view.sort = name; drawDifferences(state); } }, label + (chosen ? " ↓" : ""));
}

function drawDifferences(state) {
  if (state.first === state.second) {
    put("differences", el("p", {}, figures.limits[state.limit].rows.length > 1 ? "Choose two different policies." : "One policy alone was replayed."));
    return;
  }
  const found = differencesOf(state);
  if (!found.length) {
    put("differences", el("p", {}, `${state.first} and ${state.second} cost the same at every call.`));
    return;
  }
  const sums = reasonSums(found, state);
  found.sort(SORTS[view.sort]);
  const linked = found.findIndex((one) => one.recording === state.recording && one.call === state.call);
  const rows = found.slice(0, Math.max(view.rows, linked + 1));
  const most = found.reduce((size, one) => Math.max(size, Math.abs(one.cost)), 0);
  const cells = (run, call) => [...(run.refused[call] ? [run.refused[call], "", "", ""]
    : [run.tokens, run.read, run.written, run.uncached].map((column) => text.whole(column[call]))), text.cost(run.paid[call], most)];
  const detail = linked < 0 ? null : [found[linked]].flatMap(({ recording, call, first, second }) =>
    [[state.first, first], [state.second, second]].map(([name, run]) => el("p", {}, el("b", {}, name), " ", readout(run, figures.recordings[recording], call))));
  const each = ["tokens", "read", "written", "uncached", "cost"];
  const group = (name) => each.map((head) => el("span", {}, el("small", {}, name), el("br"), head));
  const made = table({
    caption: `Calls at which ${state.first} and ${state.second} cost differently`, kind: "calls",
    heads: [sortHead("recording", "recording", state), sortHead("call", "call", state), "time (UTC)", sortHead("difference", "difference", state), "why the dearer call costs more", ...group(state.first), ...group(state.second)],
    numbers: [1, 3, ...Array.from({ length: 10 }, (_, place) => place + 5)], marked: linked < 0 ? [] : [linked], detail,
    rows: rows.map((one) => [
      titleOf(one.recording), el("a", { href: choices.link({ ...state, recording: one.recording, call: one.call, show: [...new Set([...state.show, state.first, state.second])] }), id: `call-${one.recording}-${one.call}` }, String(one.call + 1)),
      text.time(timeOf(figures.recordings[one.recording], one.call)), el("b", { class: one.cost < 0 ? "less" : "more" }, text.signed(one.cost, (size) => text.cost(size, most))),
      el("span", { title: happened(one.cost < 0 ? one.first : one.second, one.call) }, REASONS[one.reason]), ...cells(one.first, one.call), ...cells(one.second, one.call),
    ]),
  });
  const more = found.length > rows.length ? el("button", { type: "button", class: "further", onclick: () => { view.rows = rows.length + STEP; drawDifferences(state); } }, `Show more: ${text.whole(found.length - rows.length)} are left`) : null;
  put("differences", sums, made, more);
  const row = made.querySelector("tr.best");
  if (row && (row.offsetTop < made.scrollTop || row.offsetTop > made.scrollTop + made.clientHeight - 120)) made.scrollTop = row.offsetTop - 80;
}
