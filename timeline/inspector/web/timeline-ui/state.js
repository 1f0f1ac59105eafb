// What an interface shows of a conversation's context: a state that each event of the stream moves on. It is pure, and
// says the same as `timeline.lifecycle.progress.Progress`; a test holds both to one list of events.

/**
 * @typedef {Record<string, any> & { type: string }} LiveEvent an event's data, as the stream sends it
 *
 * @typedef {object} Entry an event of the debug section
 * @property {number} key
 * @property {LiveEvent} event
 * @property {number | null} duration seconds; null where none is known
 *
 * @typedef {object} State
 * @property {"idle" | "pruning" | "summarizing" | "complete"} phase
 * @property {number | null} until until when a compaction counts as running, in milliseconds of this machine's clock
 * @property {number | null} tokensBefore
 * @property {number | null} tokensAfter
 * @property {number | null} percentSaved
 * @property {LiveEvent | null} error the newest compaction's failure, until another begins
 * @property {LiveEvent | null} overflow the refused context, until one is rendered
 * @property {LiveEvent | null} usage
 * @property {LiveEvent | null} completed the newest completed compaction
 * @property {number} compactionCount
 * @property {Entry[]} entries
 */

/** A step without an end of its own counts as running for so long: the process that began it may have died. */
const PATIENCE = 60_000;
/** The debug section keeps so many entries. */
export const MOST_ENTRIES = 500;

/** @returns {State} */
export function begin() {
  return {
    phase: "idle",
    until: null,
    tokensBefore: null,
    tokensAfter: null,
    percentSaved: null,
    error: null,
    overflow: null,
    usage: null,
    completed: null,
    compactionCount: 0,
    entries: [],
  };
}

/**
 * Begin with what the status endpoint says.
 * @param {Record<string, any>} status
 * @returns {State}
 */
export function fromStatus(status) {
  return {
    ...begin(),
    phase: status.phase,
    until: status.isCompacting ? ends(status.expiresAt) : null,
    tokensBefore: status.tokensBefore,
    tokensAfter: status.tokensAfter,
    percentSaved: status.percentSaved,
    error: status.error,
    overflow: status.overflow,
    usage: status.usage,
    compactionCount: status.compactionCount,
  };
}

/**
 * Return whether a compaction runs.
 * @param {State} state
 * @param {number} now
 */
export function isCompacting(state, now = Date.now()) {
  return (state.phase === "pruning" || state.phase === "summarizing") && state.until !== null && now < state.until;
}

/**
 * Return the state after an event.
 * @param {State} state
 * @param {LiveEvent} event
 * @returns {State}
 */
export function after(state, event) {
  const next = moved(state, event);
  return event.type === "context-usage" ? next : { ...next, entries: withEntry(state.entries, event) };
}

/** @param {State} state @param {LiveEvent} event @returns {State} */
function moved(state, event) {
  switch (event.type) {
    case "compaction-start":
      return {
        ...state,
        phase: "pruning",
        until: ends(null),
        tokensBefore: event.tokensBefore,
        tokensAfter: null,
        percentSaved: null,
        error: null,
      };
    case "compaction-prune": {
      const before = state.tokensBefore ?? 0;
      const tokensAfter = Math.max(0, (state.tokensAfter ?? before) - event.tokensSaved);
      const percentSaved = before ? 100 * (1 - tokensAfter / before) : null;
      return { ...state, phase: "pruning", until: ends(null), tokensAfter, percentSaved };
    }
    case "compaction-summarize":
      return { ...state, phase: "summarizing", until: ends(event.expiresAt) };
    case "compaction-complete":
      return {
        ...state,
        phase: "complete",
        until: null,
        tokensBefore: event.tokensBefore,
        tokensAfter: event.tokensAfter,
        percentSaved: event.percentSaved,
        completed: event,
        compactionCount: state.compactionCount + (event.wasSummarized ? 1 : 0),
      };
    case "compaction-error":
      return { ...state, phase: "idle", until: null, error: event };
    case "context-overflow":
      return { ...state, overflow: event };
    case "context-usage": {
      if (event.estimated) return { ...state, usage: event };
      const over = state.phase === "pruning"; // a refused summary may leave no event: the render ends the compaction
      const phase = over ? "complete" : state.phase;
      return { ...state, phase, until: over ? null : state.until, usage: event, overflow: null };
    }
    default:
      return state;
  }
}

/** @param {string | null | undefined} expiresAt */
function ends(expiresAt) {
  return expiresAt ? Date.parse(expiresAt) : Date.now() + PATIENCE;
}

/** @param {Entry[]} entries @param {LiveEvent} event @returns {Entry[]} */
function withEntry(entries, event) {
  const last = entries.at(-1);
  const key = (last?.key ?? 0) + 1;
  const kept = entries.slice(-(MOST_ENTRIES - 1));
  const runs = last && !ENDS.has(last.event.type) && last.event.conversation === event.conversation;
  if (runs && last.duration === null) {
    kept[kept.length - 1] = { ...last, duration: between(last.event.at, event.at) };
  }
  kept.push({ key, event, duration: event.duration ?? null });
  return kept;
}

/** These have a duration of their own, or take none: the next event does not end them. */
const ENDS = new Set(["compaction-complete", "compaction-error", "context-overflow"]);

/** @param {string | undefined} from @param {string | undefined} to */
function between(from, to) {
  const seconds = (Date.parse(to ?? "") - Date.parse(from ?? "")) / 1000;
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
}
