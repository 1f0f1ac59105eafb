// The states of rows at any version of the log, from how each of them changed. Pure.

/**
 * @typedef {Record<string, any>} Row
 * @typedef {[number, string | null, number | null, number][]} History version, state, covering summary, tokens sent
 * @typedef {Record<number, [number, number | null]>} Superseded by which compaction, and until which version
 */

/** The kinds of the account, by the types of blocks. */
const ROLES = /** @type {Record<string, string>} */ ({
  "user.prompt": "prompts",
  "user.attachment": "prompts",
  "turn.header": "prompts",
  "assistant.completion": "completions",
  "assistant.reasoning": "reasoning",
  "react.tool.call": "calls",
  "react.tool.result": "results",
  "conv.range.summary": "summaries",
});
const SENT = new Set(["visible", "abridged", "carried", "hidden", "redacted"]);

/**
 * Return a row as it was at a version.
 * @param {Row} row @param {History | undefined} history @param {Superseded} superseded @param {number} at
 * @returns {Row}
 */
export function rowAt(row, history, superseded, at) {
  if (!history || !row.address) return row;
  const now = history.findLast(([version]) => version <= at);
  if (now === undefined) return { ...row, state: "visible", covered_by: null, shown_tokens: row.tokens ?? 0 };
  return { ...row, state: now[1], covered_by: standing(now[2], superseded, at), shown_tokens: now[3] };
}

/** @param {number | null} compaction @param {Superseded} superseded @param {number} at */
function standing(compaction, superseded, at) {
  let found = compaction;
  while (found !== null) {
    const [by, until] = superseded[found] ?? [Infinity, null];
    if (by > at || (until !== null && at >= until)) return found;
    found = by;
  }
  return found;
}

/**
 * Return the conversation's state at a version, from its rows as they were then. The policy's figures are those of now.
 * @param {Row[]} rows of that version, up to it @param {Row} newest the state that the file was exported with @param {number} at
 */
export function stateAt(rows, newest, at) {
  /** @type {Record<string, { blocks: number, tokens: number }>} */
  const states = {};
  /** @type {Record<string, number>} */
  const byRole = {};
  let tokens = 0;
  for (const row of rows) {
    if (!row.address || !row.state) continue;
    const counted = (states[row.state] ??= { blocks: 0, tokens: 0 });
    counted.blocks += 1;
    counted.tokens += row.tokens ?? 0;
    if (!SENT.has(row.state)) continue;
    const role = row.state === "hidden" ? "hidden" : (ROLES[row.type] ?? "other");
    byRole[role] = (byRole[role] ?? 0) + (row.shown_tokens ?? 0);
    tokens += row.shown_tokens ?? 0;
  }
  const last = rows.at(-1);
  const newestOf = (/** @type {string} */ type) => rows.findLast((row) => row.type === type);
  const summary = rows.findLast((row) => row.type === "conv.range.summary" && row.state === "visible");
  const window = rows.find((row) => row.state === "visible");
  return {
    ...newest,
    at_version: at,
    at: last?.at ?? newest.at,
    tokens,
    by_role: byRole,
    states,
    window_start: window?.version ?? 1,
    turn_id: rows.findLast((row) => row.turn_id)?.turn_id ?? "",
    calls: rows.filter((row) => row.type === "model.called").length,
    compactions: rows.filter((row) => row.type === "conv.range.summary").length,
    context: newestOf("context.rendered")?.version ?? null,
    summary_address: summary?.address ?? null,
    open_calls: [],
  };
}
