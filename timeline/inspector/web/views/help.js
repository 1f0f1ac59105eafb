// The keys, in a box above the page.

import { html, useEffect, useRef } from "../parts/page.js";

const KEYS = [
  ["/", "search in the open conversation, or in all of them"],
  ["j k", "next and previous row of the log"],
  ["[ ]", "previous and next turn"],
  ["Enter", "open a block: its text, and why it is shown as it is"],
  ["Esc", "close it"],
  ["← →", "one version back and forth; with Shift, one call"],
  ["Home End", "the beginning of the log, and its end"],
  ["c C", "next and previous compaction"],
  ["Space", "on the slider: play, and stop"],
  ["1 … 0", "the views of a conversation, in their order"],
  ["?", "this list"],
];

/** @param {{ onClose: () => void }} props */
export function Help({ onClose }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    box.current?.showModal();
  }, []);
  return html`<dialog ref=${box} class="help-box" aria-labelledby="help-title" onClose=${onClose} onClick=${(/** @type {Event} */ event) => event.target === box.current && box.current?.close()}>
    <h2 id="help-title">Keys</h2>
    <dl>${KEYS.map(([keys, does]) => html`<div key=${keys}><dt>${keys.split(" ").map((key) => (key === "…" ? " … " : html`<kbd key=${key}>${key}</kbd>`))}</dt><dd>${does}</dd></div>`)}</dl>
    <p class="faint">All times are UTC, as the commands print them.</p>
    <form method="dialog"><button>Close</button></form>
  </dialog>`;
}
