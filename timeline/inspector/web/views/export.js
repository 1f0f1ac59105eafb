// View 14: the conversation as a file, saved from here, or written by a command.

import { shellWord } from "../pure/format.js";
import { html, useState } from "../parts/page.js";
import { Command } from "../parts/pieces.js";
import { pathOf, source } from "../parts/source.js";

/** Each form: its title, what it is, the options of its command, and what the server is asked for. @type {[string, string, string, Record<string, string> | null][]} */
const FORMS = [
  ["One HTML file", "This page with the log inside: it opens from disk and asks nobody. It has every text that the log has.", "--html", { form: "html" }],
  ["The same, to be shared", "Credentials and paths of home folders are taken out. The command prints a list to look over first, and writes the file with --yes.", "--html --redact", null],
  ["The log", "JSONL, every event; imports again, event for event.", "--format jsonl", { form: "jsonl" }],
  ["Markdown", "To be read: prompts, answers, calls and results.", "--format markdown", null],
  ["Trajectory", "ATIF, for tools that evaluate or train agents: each step with its calls, results and tokens.", "--format atif", { form: "atif" }],
  ["Messages", "All of them, uncompacted, in a provider's format.", "--wire anthropic", null],
];

/** @param {{ id: string }} props */
export function Export({ id }) {
  const [mode, setMode] = useState("full");
  const [contexts, setContexts] = useState("last");
  return html`<ul class="exports">${FORMS.map(([title, about, option, asked]) => {
    const own = /** @type {Record<string, string>} */ (asked?.form === "html" ? { mode, contexts } : {});
    const options = asked?.form === "html" ? `${mode === "full" ? "" : ` --mode ${mode}`}${contexts === "last" ? "" : ` --contexts ${contexts}`}` : "";
    return html`<li key=${title} class="export"><h3>${title}</h3><p class="faint">${about}</p>
      ${asked?.form === "html" && html`<div class="choice">
        <label>Texts <select value=${mode} onChange=${(/** @type {any} */ event) => setMode(event.target.value)}><option value="full">everything</option><option value="chat">prompts, answers and summaries</option></select></label>
        <label>Requests <select value=${contexts} onChange=${(/** @type {any} */ event) => setContexts(event.target.value)}><option value="last">of the last call</option><option value="all">of all calls</option><option value="none">none</option></select></label>
      </div>`}
      ${asked && source.now.live && html`<p><a class="save" download href=${`v1/${pathOf(id, "file")}?${new URLSearchParams({ ...asked, ...own })}`}>Save the file</a></p>`}
      <${Command} text=${`timeline export ${shellWord(id)} ${option}${options}`} /></li>`;
  })}</ul>`;
}
