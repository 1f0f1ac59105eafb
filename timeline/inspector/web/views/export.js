// View 14: the conversation as a file.

import { shellWord } from "../pure/format.js";
import { html } from "../parts/page.js";
import { Command } from "../parts/pieces.js";

const FORMS = [
  ["One HTML file", "This page with the log inside: it opens from disk and asks nobody.", "--html"],
  ["The same, to be shared", "Secrets and paths of the home folder are taken out; a list to review is printed first.", "--html --redact"],
  ["Markdown", "To be read: prompts, answers, calls and results.", "--format markdown"],
  ["JSONL", "Every event; imports again, event for event.", "--format jsonl"],
  ["Messages", "All of them, uncompacted, in a provider's format.", "--wire anthropic"],
];

/** @param {{ id: string }} props */
export function Export({ id }) {
  return html`<ul class="exports">${FORMS.map(([title, about, option]) => html`<li key=${title}><h3>${title}</h3><p class="faint">${about}</p><${Command} text=${`timeline export ${shellWord(id)} ${option}`} /></li>`)}</ul>`;
}
