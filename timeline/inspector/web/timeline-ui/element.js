// What the elements have in common: where their events come from, and how they are drawn.

import { begin } from "./state.js";
import { Feed, give, take } from "./feed.js";

/** @typedef {import("./state.js").LiveEvent} LiveEvent */

// The colours of the seed; in the dark those of its theme, so that text keeps its contrast. The page decides which: by
// `color-scheme` on any element around, as `light-dark` reads it.
const TONES = `
:host{
  --tl-text:light-dark(#27272a,#e4e4e7);--tl-faint:light-dark(#52525b,#a1a1aa);--tl-line:light-dark(#d4d4d8,#3f3f46);
  --tl-track:light-dark(#e4e4e7,#3f3f46);--tl-paper:light-dark(#fff,#18181b);--tl-focus:light-dark(#1d4ed8,#93c5fd);
  --tl-yellow-50:light-dark(#fefce8,#2a2410);--tl-yellow-200:light-dark(#fef08a,#5c4d12);--tl-yellow-700:light-dark(#854d0e,#fde68a);
  --tl-yellow-300:#fde047;--tl-yellow-400:#facc15;--tl-yellow-500:#eab308;
  --tl-amber-50:light-dark(#fffbeb,#2b2110);--tl-amber-200:light-dark(#fde68a,#6b4e12);
  --tl-amber-700:light-dark(#92400e,#fcd34d);--tl-amber-800:light-dark(#78350f,#fde68a);
  --tl-green-50:light-dark(#f0fdf4,#10261a);--tl-green-500:#22c55e;
  --tl-red-50:light-dark(#fef2f2,#2d1414);--tl-red-200:light-dark(#fecaca,#7f1d1d);--tl-red-700:light-dark(#b91c1c,#fca5a5);
  --tl-red-500:#ef4444;--tl-red-600:#dc2626;--tl-on-tone:#18181b;
  display:block;font:400 14px/1.45 var(--tl-font,system-ui,sans-serif);color:var(--tl-text)
}
:host([hidden]){display:none}
:focus-visible{outline:2px solid var(--tl-focus);outline-offset:2px}
button{font:inherit;color:inherit;background:var(--tl-paper);border:1px solid var(--tl-line);border-radius:6px;padding:3px 10px;min-height:28px;cursor:pointer}
button.plain{background:none;border-color:transparent;padding:3px 8px}
.faint{color:var(--tl-faint)}
.figures{font-variant-numeric:tabular-nums}
`;

/** @param {string} css */
export function sheet(css) {
  const made = new CSSStyleSheet();
  made.replaceSync(css);
  return made;
}

const shared = sheet(TONES);

/**
 * An element over a feed. It draws again after each event. Its events come from `src`, or from the page: by the property
 * `events`, a list, by `push(event)`, or by the property `feed`, which several elements may share.
 */
export class LiveElement extends HTMLElement {
  static get observedAttributes() {
    return ["src", "after"];
  }

  /** @param {CSSStyleSheet} own */
  constructor(own) {
    super();
    this._root = this.attachShadow({ mode: "open" });
    this._root.adoptedStyleSheets = [shared, own];
    this._feed = new Feed();
    this._heard = () => this._changed();
    this._joined = false;
    /** @type {import("./feed.js").StreamFeed | null} what `src` names: it is given back */
    this._taken = null;
  }

  connectedCallback() {
    this._connect();
  }

  disconnectedCallback() {
    this._leave();
  }

  attributeChangedCallback() {
    if (this.isConnected) this._connect();
  }

  /** The feed that it shows. Setting one replaces what `src` names. */
  get feed() {
    return this._feed;
  }

  set feed(feed) {
    this._leave();
    this._feed = feed;
    if (this.isConnected) this._join();
  }

  get state() {
    return this._feed.state;
  }

  /** Show these events and no others. @param {LiveEvent[]} events */
  set events(events) {
    const feed = new Feed();
    feed.state = begin();
    for (const event of events) feed.push(event);
    this.feed = feed;
  }

  /** Take one more event in. @param {LiveEvent} event */
  push(event) {
    this._feed.push(event);
  }

  _connect() {
    this._leave();
    const src = this.getAttribute("src");
    if (src) this._feed = this._taken = take(src, this.getAttribute("after") ?? "");
    this._join();
  }

  _join() {
    if (!this._joined) {
      for (const name of ["change", "lost", "found", "erased"]) this._feed.addEventListener(name, this._heard);
    }
    this._joined = true;
    this._changed();
  }

  _leave() {
    if (!this._joined) return;
    for (const name of ["change", "lost", "found", "erased"]) this._feed.removeEventListener(name, this._heard);
    if (this._taken) give(this._taken);
    this._taken = null;
    this._joined = false;
  }

  _changed() {
    this.toggleAttribute("stale", this._feed.trouble !== "");
    this.draw();
  }

  /** Draw the state. */
  draw() {}

  /** Say something to the page. @param {string} name @param {unknown} detail */
  say(name, detail) {
    return this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable: true }));
  }
}

/**
 * Make an element with text or children; text is never markup.
 * @param {string} tag
 * @param {Record<string, any>} [given] attributes; a function is a listener
 * @param {...(Node | string | null | false)} children
 */
export function make(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== false).map((child) => /** @type {Node | string} */ (child)));
  return made;
}
