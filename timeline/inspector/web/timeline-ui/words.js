// The words and colours of the design (seed 004, phase 7), and how figures are written.

/** @typedef {import("./state.js").LiveEvent} LiveEvent */

/** The label of each kind of event, the name of its colour, and a sign beside the colour. */
export const KINDS = /** @type {Record<string, { label: string, tone: string, sign: string }>} */ ({
  "compaction-start": { label: "Compacting", tone: "yellow-500", sign: "▸" },
  "compaction-prune": { label: "Pruning", tone: "yellow-400", sign: "✂" },
  "compaction-summarize": { label: "Summarizing", tone: "yellow-300", sign: "✎" },
  "compaction-complete": { label: "Compacted", tone: "green-500", sign: "✓" },
  "compaction-error": { label: "Compact Fail", tone: "red-500", sign: "✕" },
  "context-overflow": { label: "Overflow", tone: "red-600", sign: "▲" },
});

const FIGURES = new Intl.NumberFormat("en-US");

/** @param {number | null | undefined} figure */
export function figure(figure) {
  return figure === null || figure === undefined ? "?" : FIGURES.format(Math.round(figure));
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 0.0005) return "under 1 ms";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 99.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** Return the share of the tokens that was saved, in whole per cent. @param {LiveEvent} event */
export function saved(event) {
  return event.tokensBefore ? Math.max(0, Math.round((1 - event.tokensAfter / event.tokensBefore) * 100)) : 0;
}

/** Say an event of the debug section in a line. @param {LiveEvent} event */
export function line(event) {
  switch (event.type) {
    case "compaction-start":
      return `${figure(event.tokensBefore)} tokens, limit ${figure(event.modelLimit)} (${event.reason})`;
    case "compaction-prune":
      return (event.prunedTools ?? []).join(", ") || "blocks hidden";
    case "compaction-summarize":
      return `${counted(event.messagesCount, "message")}`;
    case "compaction-complete":
      return [event.wasPruned && "pruned", event.wasSummarized && "summarized"].filter(Boolean).join(" and ");
    case "compaction-error":
      return event.error;
    case "context-overflow":
      return `${figure(event.currentTokens)} of ${figure(event.limit)} tokens (${Math.round(event.percentUsed)} %)`;
    default:
      return "";
  }
}

/** @param {number} count @param {string} word */
export function counted(count, word) {
  return `${figure(count)} ${word}${count === 1 ? "" : "s"}`;
}
