"use strict";
// What is told at a glance: how much was replayed, which policy is the cheapest and what it gives up for that; and the
// table of all.

function drawScope(state) {
  const calls = figures.limits[0].rows[0].calls;
  const files = new Set(figures.recordings.map((recording) => recording.name)).size;
  const told = [text.counted(files, "recording"), text.counted(figures.recordings.length, "conversation"), text.counted(calls, "model call"), text.counted(figures.policies.length, "policy", "policies")];
  const limits = figures.limits.length < 2 ? null : el("label", {}, "Context limit ",
    el("select", { id: "limit", onchange: (event) => choices.change({ limit: Number(event.target.value) }) },
      figures.limits.map((one, place) => el("option", { value: place, selected: place === state.limit }, text.whole(one.limit) + " tokens"))));
  put("scope", el("p", { class: "scope" }, told.join(" · ")), limits);
}

function drawAnswer(here) {
  const first = here.rows[0];
  const best = here.cheapest === null ? null : here.rows[here.cheapest];
  const limit = text.whole(here.limit);
  if (best === null) {
    put("answer", el("h1", { id: "headline" }, `No policy keeps all calls within ${limit} tokens.`), warnings(here));
    return;
  }
  const alone = here.rows.length < 2;
  const cost = best === first || best.relative === null ? [] : [": ", el("b", {}, text.share(best.relative)), " of what ", el("em", {}, first.policy), " costs"];
  const headline = el("h1", { id: "headline" }, el("em", { class: "policy" }, best.policy), ` ${alone ? "keeps all calls" : "is the cheapest policy"} within ${limit} tokens`, cost, ".", alone ? null : el("span", { class: "gives" }, kept(best, here.rows.filter((row) => row.keeps))));
  const inside = here.rows.filter((row) => row.keeps);
  const breaks = Object.values(best.collapses).reduce((sum, count) => sum + count, 0);
  const cards = [
    ["cost", text.total(best.cost),
      alone ? "one policy alone was replayed" : best === first ? "the others are held against it"
        : `${text.total(first.cost, best.cost)} with ${first.policy}${first.keeps ? "" : ", which does not keep to the limit"}`],
    ["in sight", text.short(best.mean_visible) + " tokens", sight(best, inside)],
    ["files out of sight when needed", `${text.whole(best.hidden_needs)} of ${text.whole(best.needs)}`, needs(best, inside)],
    ["the cache broke", text.counted(breaks, "time"), breaks ? text.counts(best.collapses) : "no call lost more than half of its prefix"],
  ];
  put("answer", headline, el("dl", { class: "cards" }, cards.map(([name, value, more]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, el("b", {}, value), el("span", {}, more))))), warnings(here));
}

/** What the model still has under the cheapest policy, beside the one that leaves it the most: a price alone praises what forgets. */
function kept(best, inside) {
  const [has, write, words] = best.facts_middle + best.facts_far ? [RECALL.value, text.share, "of the older facts that answers used are in sight or one read away"]
    : best.needs ? [(row) => 1 - row.hidden_needs / row.needs, text.share, "of the files that calls named again are in sight"]
    : [(row) => row.mean_visible, text.short, "tokens are in sight in the mean"];
  const most = inside.reduce((one, other) => (has(other) > has(one) ? other : one));
  const beside = has(most) > has(best) ? `; ${write(has(most))} with ${most.policy}${most.relative === null ? "" : `, for ${text.share(most.relative)} of the cost`}` : "";
  return `${write(has(best))} ${words}${beside}.`;
}

function sight(best, inside) {
  const widest = inside.reduce((one, other) => (other.mean_visible > one.mean_visible ? other : one));
  const most = inside.length < 2 ? "" : widest === best ? ", the most within the limit" : `; ${text.short(widest.mean_visible)} with ${widest.policy}, the most within the limit`;
  return `in the mean over the calls${most}. ${text.counted(best.hides, "block")} hidden, ${text.counted(best.compactions, "summary", "summaries")} written`;
}

function needs(best, inside) {
  if (!best.needs) return "no tool call named a file again";
  const least = inside.reduce((one, other) => (other.hidden_needs < one.hidden_needs ? other : one));
  const share = `${text.share(best.hidden_needs / best.needs)} of what tool calls named again`;
  if (inside.length < 2) return share;
  return least.hidden_needs === best.hidden_needs ? `${share}: the least within the limit` : `${share}; ${text.whole(least.hidden_needs)} with ${least.policy}`;
}

function warnings(here) {
  const over = here.rows.filter((row) => row.over_limit);
  const refused = here.rows.filter((row) => Object.keys(row.refused).length);
  const told = [
    ...over.map((row) => `${row.policy} sends ${text.counted(row.over_limit, "call")} above the limit.`),
    ...refused.map((row) => `${row.policy} refuses calls (${text.counts(row.refused)}). A refused call costs nothing; the share is of what the first policy pays for the other calls.`),
    ...here.rows.filter((row) => row.failed).map((row) => `${row.policy} failed on ${text.counted(row.failed, "recording")} that other policies did not fail on: its cost compares with nothing.`),
    figures.cost_in === "money" ? null : `There is no price for ${figures.unpriced.join(", ")}: costs are compared in base tokens, in which a token of a dear model counts no more than one of a cheap one.`,
    here.capped ? "The system prompt and tools would not leave room within this limit, and count less than they did." : null,
    ...figures.failures,
  ].filter(Boolean);
  return told.length ? el("ul", { class: "warnings" }, told.map((line) => el("li", {}, line))) : null;
}

/** The share of the first policy's cost; of one that does not keep to the limit it is faint, and says so. */
function compared(row) {
  const share = text.relative(row.relative);
  return row.keeps ? share : el("span", { class: "apart", title: "does not keep to the limit: compares with nothing" }, share);
}

function drawPolicies(here) {
  const heads = ["policy", "cost", "dollars", "base tokens", "written", "collapses", "compactions", "split", "hides", "visible", "at end", "needs hidden", "over limit", "orphans", "refused", "seconds"];
  put("policies", table({
    caption: `Policies within ${text.whole(here.limit)} tokens`, heads, marked: here.cheapest === null ? [] : [here.cheapest], kind: "policies",
    numbers: heads.flatMap((head, place) => (["policy", "collapses", "refused"].includes(head) ? [] : [place])),
    rows: here.rows.map((row) => [
      row.policy, compared(row), row.priced ? row.money.toFixed(2) : "–", text.whole(row.units),
      text.share(row.write_share), text.counts(row.collapses), text.whole(row.compactions), text.whole(row.splits), text.whole(row.hides),
      text.whole(row.mean_visible), text.whole(row.mean_visible_at_end), `${text.whole(row.hidden_needs)} of ${text.whole(row.needs)}`,
      text.whole(row.over_limit), text.whole(row.orphans), text.counts(row.refused), row.seconds.toFixed(1),
    ]),
  }));
}
