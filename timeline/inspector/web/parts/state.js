// The page's state: the address, and what follows from it.

import { changed, readAddress, writeAddress } from "../pure/address.js";
import { computed, signal } from "./page.js";

/** @typedef {import("../pure/address.js").Address} Address */

/** What is seen. */
export const address = signal(readAddress(location.hash));

/** The conversation that is open, or an empty text. */
export const conversation = computed(() => address.value.conversation);

addEventListener("hashchange", () => {
  if (location.hash !== writeAddress(address.peek())) address.value = readAddress(location.hash);
});

let written = 0;

/** Go to an address; one can go back from it. @param {Address} to */
export function go(to) {
  clearTimeout(written);
  address.value = to;
  const hash = writeAddress(to);
  if (location.hash !== hash) location.hash = hash;
}

/** Change values of the address, and be able to go back. @param {Record<string, string | number | null | undefined>} changes */
export function open(changes) {
  go(changed(address.peek(), changes));
}

/**
 * Change values without a step to go back to, as a slider does; the address bar follows a moment later, since browsers
 * refuse to write it hundreds of times.
 * @param {Record<string, string | number | null | undefined>} changes
 */
export function slide(changes) {
  address.value = changed(address.peek(), changes);
  clearTimeout(written);
  const { hash } = location;
  written = setTimeout(() => {
    // A link that was followed meanwhile has written its own, and the page hears of it only after this.
    if (location.hash === hash) history.replaceState(null, "", writeAddress(address.peek()));
  }, 150);
}

/** The address of a view of the open conversation, as a link. @param {string} view @param {Record<string, string | number | null | undefined>} changes */
export function linkTo(view, changes = {}) {
  return writeAddress(changed({ ...address.peek(), view }, changes));
}

/** The version looked at, or null for the newest one. */
export const chosen = computed(() => {
  const text = address.value.given.at;
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
});

/** What is being announced to screen readers. */
export const spoken = signal("");

/** @param {string} text */
export function say(text) {
  spoken.value = text;
}
