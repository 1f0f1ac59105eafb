// View 13: what happens now, by the elements that an application's own chat page can use too.

import { shellWord, short, whole } from "../pure/format.js";
import { Empty, Failed, Loading } from "../parts/loading.js";
import { html, useEffect, useRef, useState } from "../parts/page.js";
import { Command } from "../parts/pieces.js";
import { pathOf, source } from "../parts/source.js";

/** Versions before the newest one whose events are shown, and how far the newest compaction may lie before these. */
const NEAR = 500;
const FAR = 5000;

/** Where the events begin: such that the newest compaction is among them. @param {any} row @param {any} newest */
function beginning(row, newest) {
  const near = row.version - NEAR;
  const first = newest && newest.version > row.version - FAR ? Math.min(near, newest.version - 20) : near;
  return Math.max(0, row.first_version - 1, first);
}

/** @param {{ id: string, row: any, found: any }} props */
export function Live({ id, row, found }) {
  const since = useRef(beginning(row, found.newest_compaction)).current;
  const [ready, setReady] = useState(/** @type {any} */ (null));
  const { live } = source.now;
  useEffect(() => {
    // Nobody waits for the elements who does not look at them.
    if (live) import("../timeline-ui/timeline-ui.js").then(() => setReady(true), setReady);
  }, [live]);
  if (!live) return html`<${Empty} title="This is a file"><p>It shows the log as it was when it was exported. No new events arrive.</p><//>`;
  if (ready === null) return html`<${Loading} of="What happens now" />`;
  if (ready !== true) return html`<${Failed} error=${ready} of="What happens now" />`;
  const stream = `v1/${pathOf(id, "events")}`;
  return html`<div class="live">
    <section class="card" aria-label="Now">
      ${row.limit === null && html`<p>${row.tokens === null ? "Nothing was sent yet" : `${short(row.tokens)} tokens`}; no limit is known, so no bar is shown.</p>`}
      <tl-context-usage src=${stream}></tl-context-usage>
      <tl-compaction-indicator src=${stream}></tl-compaction-indicator>
      <tl-compaction-error src=${stream}></tl-compaction-error>
    </section>
    <section class="card" aria-labelledby="live-title">
      <h2 id="live-title">Events, newest last</h2>
      <${Events} stream=${stream} since=${since} />
    </section>
    <section>
      <p class="faint">The same stream in a terminal, and these elements on a chat page of your own:</p>
      <${Command} text=${`timeline watch ${shellWord(id)}`} />
      <${Command} text=${`<tl-context-usage src="/timeline/${stream}"></tl-context-usage>`} />
    </section>
  </div>`;
}

/** The events, and until there is one, what is waited for. @param {{ stream: string, since: number }} props */
function Events({ stream, since }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const [state, setState] = useState("reading");
  useEffect(() => {
    const list = /** @type {any} */ (document.createElement("tl-context-debug"));
    // Each element has a method of this name, so that Preact would set a property and no attribute.
    list.setAttribute("after", String(since));
    list.setAttribute("src", stream);
    place.current?.replaceChildren(list);
    const { feed } = list;
    const seen = () => setState(feed.trouble === "lost" ? "lost" : feed.state.entries.length ? "there" : "none");
    const names = ["change", "lost", "found", "erased"];
    for (const name of names) feed.addEventListener(name, seen);
    // A quiet log sends no event: a stream that is open for this long has none in it.
    const timer = setTimeout(seen, 3000);
    return () => {
      clearTimeout(timer);
      for (const name of names) feed.removeEventListener(name, seen);
    };
  }, [stream, since]);
  return html`<p role="status" class=${state === "there" ? "unseen" : "faint"}>${
    state === "there" ? "" : state === "lost" ? "The stream broke off; connecting again." : state === "none" ? `No compaction, error or overflow since version ${whole(since)}. One shows here as it happens.` : `The events since version ${whole(since)} are being read.`
  }</p><div ref=${place}></div>`;
}
