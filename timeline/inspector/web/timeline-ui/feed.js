// Follow the stream of a conversation: the status first, then the events behind its version. Elements that name the same
// stream share one connection, since a browser has few of them.

import { after, begin, fromStatus } from "./state.js";

/** @typedef {import("./state.js").State} State @typedef {import("./state.js").LiveEvent} LiveEvent */

const NAMES = [
  "compaction-start",
  "compaction-prune",
  "compaction-summarize",
  "compaction-complete",
  "compaction-error",
  "context-overflow",
  "context-usage",
];

/**
 * A state that events move on. It dispatches `change` after each one, with the event as `detail`; `lost`, `found` and
 * `erased` say what became of the connection.
 */
export class Feed extends EventTarget {
  constructor() {
    super();
    /** @type {State} */
    this.state = begin();
    /** @type {"" | "lost" | "erased"} */
    this.trouble = "";
  }

  /** Take an event in. @param {LiveEvent} event */
  push(event) {
    this.state = after(this.state, event);
    this.dispatchEvent(new CustomEvent("change", { detail: event }));
  }

  /** @param {State} state */
  reset(state) {
    this.state = state;
    this.dispatchEvent(new CustomEvent("change", { detail: null }));
  }

  /** @param {"" | "lost" | "erased"} trouble */
  _trouble(trouble) {
    if (this.trouble === trouble) return;
    this.trouble = trouble;
    this.dispatchEvent(new CustomEvent(trouble || "found"));
  }
}

/** A feed from a server. */
export class StreamFeed extends Feed {
  /** @param {string} url of the stream @param {string} from "" to begin with the present, or a version */
  constructor(url, from) {
    super();
    this.url = url;
    this.from = from;
    this.users = 0;
    this.pause = 500;
    /** @type {EventSource | null} */
    this.source = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.waiting = undefined;
    this.closed = false;
    /** The id of the newest event, to go on behind it where the browser gave up. */
    this.last = "";
    this._begin();
  }

  close() {
    this.closed = true;
    clearTimeout(this.waiting);
    this.source?.close();
  }

  async _begin() {
    let version = this.from;
    try {
      if (version === "") {
        const answer = await fetch(this.url.replace(/events(\?|$)/, "status$1"), { credentials: "same-origin" });
        if (answer.status === 410) return this._trouble("erased");
        if (!answer.ok) throw new Error(`the status was answered ${answer.status}`);
        const status = await answer.json();
        if (this.closed) return;
        version = String(status.version);
        this.reset(fromStatus(status));
      } else {
        this.reset(begin());
      }
    } catch {
      this._again(); // nobody answers, or no sense: the state stays, `lost` says so, and it is tried again
      return;
    }
    this._listen(version);
  }

  /** @param {string} version */
  _listen(version) {
    if (this.closed) return;
    const mark = this.url.includes("?") ? "&" : "?";
    const source = new EventSource(`${this.url}${mark}after=${version}`);
    this.source = source;
    source.addEventListener("open", () => {
      this.pause = 500;
      this._trouble("");
    });
    for (const name of NAMES) {
      source.addEventListener(name, (message) => {
        const { data, lastEventId } = /** @type {MessageEvent} */ (message);
        this.last = lastEventId;
        this.push(JSON.parse(data));
      });
    }
    source.addEventListener("conversation-erased", () => {
      source.close();
      this._trouble("erased");
    });
    source.addEventListener("stream-error", () => {
      source.close();
      this._again();
    });
    source.addEventListener("error", () => {
      // While it connects, the browser comes back by itself, behind the last id. A refusal closes it for good.
      if (source.readyState === EventSource.CLOSED) this._again();
      else this._trouble("lost");
    });
  }

  _again() {
    if (this.closed) return;
    this._trouble("lost");
    // What is behind the newest event is tried once; if that is refused, too, all begins anew.
    const behind = this.last;
    this.last = "";
    this.waiting = setTimeout(() => (behind ? this._listen(behind) : this._begin()), this.pause);
    this.pause = Math.min(10_000, this.pause * 2);
  }
}

/** @type {Map<string, StreamFeed>} */
const open = new Map();

/** Return the feed of a stream, which others may use too. @param {string} src @param {string} from */
export function take(src, from = "") {
  const url = new URL(src, document.baseURI).href;
  const key = `${from} ${url}`;
  const feed = open.get(key) ?? new StreamFeed(url, from);
  open.set(key, feed);
  feed.users += 1;
  return feed;
}

/** @param {StreamFeed} feed */
export function give(feed) {
  feed.users -= 1;
  if (feed.users > 0) return;
  open.delete(`${feed.from} ${feed.url}`);
  feed.close();
}
