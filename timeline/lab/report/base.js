"use strict";
// What the rest of the page stands on: the figures, elements, numbers as text, and the choices in the address.

const figures = JSON.parse(document.getElementById("figures").textContent);

/** Make an element. Texts become text nodes, so that nothing a recording says is ever read as HTML. */
function el(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "circle", "line", "text", "title", "rect"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "style") Object.assign(made.style, value);
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Put elements in place of what was there; the focus stays where it was, and boxes stay scrolled. */
function put(id, ...children) {
  const place = document.getElementById(id);
  const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
  const scrolled = [...place.querySelectorAll(".scroll")].map((box) => [box.className, box.scrollLeft, box.scrollTop]);
  place.replaceChildren(...children.flat().filter(Boolean));
  for (const [name, left, top] of scrolled) place.getElementsByClassName(name)[0]?.scrollTo(left, top);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

/**
 * A table in a box that scrolls by itself. Cells are texts or elements; the first of a row is its header. Below the
 * marked row stands its `detail`, where there is one.
 */
function table({ caption, heads, rows, numbers = [], marked = [], kind, detail = null }) {
  const align = (column) => (numbers.includes(column) ? "number" : null);
  const head = el("tr", {}, heads.map((text, column) => el("th", { scope: "col", class: align(column) }, text)));
  const body = rows.flatMap((cells, place) => {
    const best = marked.includes(place);
    const row = el("tr", { class: best ? "best" : null }, cells.map((cell, column) =>
      el(column ? "td" : "th", { scope: column ? null : "row", class: align(column), title: column || cell instanceof Node ? null : cell }, cell ?? "")));
    return best && detail ? [row, el("tr", { class: "best detail" }, el("td", { colspan: heads.length }, detail))] : [row];
  });
  const made = el("table", { class: kind }, el("caption", { class: "unseen" }, caption), el("thead", {}, head), el("tbody", {}, body));
  return el("div", { class: `scroll of-${kind}`, tabindex: "0", role: "region", "aria-label": caption }, made);
}

const CAUSES = {
  gap: "cache expired", model: "another model", compaction: "compaction", hide: "blocks hidden", undo: "undo", lookback: "marker too far",
  below_minimum: "below the minimum", tools: "tools changed", system: "system prompt changed", other: "other rewrite",
};

const text = {
  whole: (value) => Math.round(value).toLocaleString("en-US"),
  short: (value) => {
    const size = Math.abs(value);
    if (size >= 999_500) return (value / 1e6).toFixed(size < 9.995e6 ? 2 : 1) + "M";
    if (size >= 1000) return (value / 1e3).toFixed(size < 9950 ? 1 : 0) + "k";
    return String(Math.round(value));
  },
  signed: (value, write = text.short) => (value > 0 ? "+" : value < 0 ? "−" : "") + write(Math.abs(value)),
  share: (value, digits = 1) => (100 * value).toFixed(digits) + " %",
  relative: (value) => (value === null ? "–" : value.toFixed(3)),
  /** Dollars, to a hundredth of `most` at the least: small ones need digits that large ones do not. */
  money: (value, most = value) => {
    const digits = most ? Math.min(9, Math.max(2, 2 - Math.floor(Math.log10(Math.abs(most))))) : 2;
    return "$" + value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  },
  /** A cost in what costs are compared in; `most` is the largest of those beside it. */
  cost: (value, most = value) => (figures.cost_in === "money" ? text.money(value, most) : text.whole(value)),
  total: (value, most = value) => (figures.cost_in === "money" ? text.money(value, most) : text.short(value) + " base tokens"),
  cause: (name) => CAUSES[name] ?? name.replaceAll("_", " "),
  counted: (count, one, many = one + "s") => `${text.whole(count)} ${count === 1 ? one : many}`,
  counts: (found) => Object.entries(found).map(([name, count]) => `${text.whole(count)}× ${text.cause(name)}`).join(", ") || "–",
  time: (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " "),
  duration: (seconds) =>
    seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`,
};

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name.replaceAll("_", "-")).trim();

/** A column that was told as pairs, as a whole one. */
function column(pairs, length) {
  const whole = new Array(length).fill(0);
  for (let place = 0; place < pairs.length; place += 2) whole[pairs[place]] = pairs[place + 1];
  return whole;
}

const SPARSE = ["lost", "collapsed", "hidden", "compactions", "splits", "covered_tokens", "needs", "hidden_needs", "cause", "summary", "over_limit", "refused"];

/**
 * A run with all of its columns whole; unpacked when it is first asked for. `spent` is what a call costs with the
 * summaries before it, in base tokens, and `paid` the same in what costs are compared in.
 */
function runOf(limit, policy, recording) {
  limit.found ??= new Map(limit.runs.map((run) => [`${run.policy}/${run.recording}`, run]));
  const run = limit.found.get(`${policy}/${recording}`);
  if (run && !run.unpacked) {
    for (const name of SPARSE) run[name] = column(run[name], run.read.length);
    run.tokens = run.read.map((read, call) => read + run.written[call] + run.uncached[call]);
    run.spent = run.units.map((units, call) => units + run.summary[call]);
    const { model, rates } = figures.recordings[recording];
    const models = column(model, run.read.length);
    run.paid = run.spent.map((units, call) => units * rates[models[call]]);
    run.unpacked = true;
  }
  return run;
}

function titleOf(place) {
  const recording = figures.recordings[place];
  return recording.part ? `${recording.name} · ${recording.part}` : recording.name;
}

function timeOf(recording, call) {
  return recording.start + recording.at[call];
}

/** The page's choices. They live in the address behind the `#`, so that whatever is seen can be linked to. */
const choices = {
  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const limit = Math.max(0, figures.limits.findIndex((one) => String(one.limit) === given.get("limit")));
    const here = figures.limits[limit];
    const names = here.rows.map((row) => row.policy);
    const named = (name, otherwise) => (names.includes(given.get(name)) ? given.get(name) : otherwise);
    const best = here.cheapest === null ? names[names.length - 1] : names[here.cheapest];
    const shown = given.getAll("show").filter((name) => names.includes(name));
    const recording = Number.parseInt(given.get("recording") ?? "", 10);
    const call = Number.parseInt(given.get("call") ?? "", 10);
    return {
      limit,
      show: shown.length ? shown : [...new Set([names[0], best])],
      first: named("first", names[0]),
      second: named("second", best === names[0] ? names[1] ?? best : best),
      recording: figures.recordings[recording - 1] ? recording - 1 : 0,
      only: given.get("only") === "1",
      call: call > 0 ? call - 1 : null,
    };
  },
  link(changes) {
    const { limit, show, first, second, recording, only, call } = { ...this.read(), call: null, ...changes };
    const told = new URLSearchParams({ limit: figures.limits[limit].limit, recording: recording + 1, first, second });
    for (const name of show) told.append("show", name);
    if (only) told.set("only", "1");
    if (call !== null) told.set("call", call + 1);
    return "#" + told;
  },
  change(changes) {
    location.replace(this.link(changes));
  },
};
