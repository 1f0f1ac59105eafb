"use strict";
// Bars that are divided into parts, in a table that says the same in figures.

/** rows: [{ name, values, total, best }]; keys: what the parts are called by; names: what their colours are. */
function stackedTable({ caption, keys: named, colours: of, rows: given, write, totalHead, total }) {
  const told = [...named.keys()].filter((place) => given.some((row) => row.values[place]));
  const [keys, colours] = [told.map((place) => named[place]), told.map((place) => of[place])];
  const rows = given.map((row) => ({ ...row, values: told.map((place) => row.values[place]) }));
  const most = Math.max(1e-9, ...rows.map((row) => row.values.reduce((sum, value) => sum + value, 0)));
  const bar = (row) =>
    el("div", { class: "bar", "aria-hidden": "true" }, row.values.map((value, place) =>
      value > 0 ? el("span", {
        style: { width: `${(100 * value) / most}%`, background: `var(--${colours[place]})` },
        title: `${row.name}, ${keys[place]}: ${write(value)}`,
      }) : null));
  const heads = ["policy", "", ...keys.map((key, place) => el("span", { class: "key" },
    el("i", { style: { background: `var(--${colours[place]})` }, "aria-hidden": "true" }), key)), totalHead];
  return table({
    caption, heads, kind: "stacked", numbers: [...keys.keys(), keys.length].map((place) => place + 2),
    marked: rows.flatMap((row, place) => (row.best ? [place] : [])),
    rows: rows.map((row) => [row.name, bar(row), ...row.values.map((value) => (value ? write(value) : "–")), total(row)]),
  });
}

function drawParts(here) {
  const most = Math.max(...here.rows.map((row) => row.cost));
  const inMoney = figures.cost_in === "money";
  const write = (value) => (inMoney ? text.money(value, most) : text.short(value));
  put("parts", el("p", { class: "hint" }, (inMoney ? "In dollars" : "In base tokens") + ". Writing a token to the cache costs more than sending it uncached; reading it back costs a small part of that."),
    stackedTable({
      caption: `Cost by part, in ${inMoney ? "dollars" : "base tokens"}`, keys: figures.parts, colours: figures.parts, write,
      totalHead: "total", total: (row) => write(row.cost),
      rows: here.rows.map((row, place) => ({ name: row.policy, values: row.parts, cost: row.cost, best: place === here.cheapest })),
    }));
}

function drawCollapses(here) {
  const causes = figures.causes.filter((cause) => here.rows.some((row) => row.collapses[cause]));
  if (!causes.length) {
    put("collapses", el("p", {}, "At no call was more than half of the cached prefix lost."));
    return;
  }
  put("collapses", el("p", { class: "hint" }, "Calls at which more than half of the cached prefix was lost, by cause; on the right all tokens that were cached and had to be sent anew."),
    stackedTable({
      caption: "Calls at which the cache broke, by cause", keys: causes.map(text.cause), colours: causes.map((cause) => "cause-" + cause.replaceAll("_", "-")),
      write: text.whole, totalHead: "tokens lost", total: (row) => text.short(row.lost),
      rows: here.rows.map((row, place) => ({
        name: row.policy, values: causes.map((cause) => row.collapses[cause] ?? 0), best: place === here.cheapest,
        lost: Object.values(row.lost).reduce((sum, value) => sum + value, 0),
      })),
    }));
}
