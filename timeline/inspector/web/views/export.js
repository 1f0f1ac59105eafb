// View 14: the conversation as a file, saved from here, or written by a command.

import { shellWord, whole } from "../pure/format.js";
import { Shown, useLoaded } from "../parts/loading.js";
import { html, useState } from "../parts/page.js";
import { Command } from "../parts/pieces.js";
import { pathOf, source } from "../parts/source.js";
import { linkTo } from "../parts/state.js";

/** @typedef {{ title: string, about: string, options: string, form?: string, shared?: boolean }} Form What a file is, the options of its command, what the server calls it, and whether it is looked over first. */

/** @type {Form[]} */
const FORMS = [
  { title: "One HTML file", about: "This page with the log inside: it opens from disk and makes no request. It has every text that the log has.", options: "--html", form: "html" },
  { title: "The same, to be shared", about: "Without credentials and the names of home folders. Look over what is taken out first.", options: "--html --redact", form: "html", shared: true },
  { title: "Bug bundle", about: "One zip for a bug report: the log, the policy, versions, what verify says, the newest errors. Without credentials and the names of home folders. Look over what is taken out first.", options: "--format bundle", form: "bundle", shared: true },
  { title: "The log", about: "JSONL, every event; imports again, event for event.", options: "--format jsonl", form: "jsonl" },
  { title: "Markdown", about: "To read: prompts, answers, calls and results.", options: "--format markdown" },
  { title: "Trajectory", about: "ATIF, for tools that evaluate or train agents: each step with its calls, results and tokens.", options: "--format atif", form: "atif" },
  { title: "Messages", about: "All of them, uncompacted, in a provider's format.", options: "--wire anthropic" },
];

/** @param {{ id: string }} props */
export function Export({ id }) {
  return html`<ul class="exports">${FORMS.map((form) => html`<${OneForm} key=${form.title} id=${id} form=${form} />`)}</ul>`;
}

/** @param {{ id: string, form: Form }} props */
function OneForm({ id, form }) {
  const [mode, setMode] = useState("full");
  const [contexts, setContexts] = useState("last");
  const [reviewing, setReviewing] = useState(false);
  const [keep, setKeep] = useState(/** @type {string[]} */ ([]));
  const own = /** @type {Record<string, string>} */ (form.form === "html" ? { mode, contexts } : {});
  const asked = { format: form.form ?? "", ...own, ...(form.shared && form.form === "html" ? { redact: "true" } : {}), ...(keep.length ? { keep: keep.join(",") } : {}) };
  const options = [
    form.options,
    ...(own.mode && mode !== "full" ? [`--mode ${mode}`] : []),
    ...(own.contexts && contexts !== "last" ? [`--contexts ${contexts}`] : []),
    ...keep.map((name) => `--keep ${name}`),
    ...(form.shared && reviewing ? ["--yes"] : []),
  ];
  const again = (/** @type {(value: string) => void} */ set) => (/** @type {any} */ event) => {
    set(event.target.value);
    setReviewing(false);
    setKeep([]);
  };
  const save = html`<p><a class="save" download href=${`v1/${pathOf(id, "file")}?${new URLSearchParams(asked)}`}>Save the file</a></p>`;
  return html`<li class="export"><h3>${form.title}</h3><p class="faint">${form.about}</p>
    ${own.mode && html`<div class="choice">
      <label>Texts <select value=${mode} onChange=${again(setMode)}><option value="full">everything</option><option value="chat">prompts, answers and summaries</option></select></label>
      <label>Requests <select value=${contexts} onChange=${again(setContexts)}><option value="last">of the last call</option><option value="all">of all calls</option><option value="none">none</option></select></label>
    </div>`}
    ${form.form && source.now.live && (form.shared ? html`<${Reviewed} id=${id} asked=${{ format: form.form, ...own }} reviewing=${reviewing} review=${() => setReviewing(true)} keep=${keep} setKeep=${setKeep} save=${save} />` : save)}
    <${Command} text=${`timeline export ${shellWord(id)} ${options.join(" ")}`} /></li>`;
}

/** What would be taken out, each to be kept or not; behind it the file. @param {{ id: string, asked: Record<string, string>, reviewing: boolean, review: () => void, keep: string[], setKeep: (keep: string[]) => void, save: unknown }} props */
function Reviewed({ id, asked, reviewing, review, keep, setKeep, save }) {
  const found = useLoaded(reviewing ? pathOf(id, "review") : null, asked, `${id} ${JSON.stringify(asked)}`);
  if (!reviewing) return html`<p><button onClick=${review}>Look over what is taken out</button></p>`;
  const choose = (/** @type {string} */ name, /** @type {boolean} */ kept) => setKeep(kept ? [...keep, name] : keep.filter((one) => one !== name));
  return html`<${Shown} answer=${found} of="What is taken out" lines=${3}>${(/** @type {any} */ data) => html`
    <p role="status">${data.findings.length === 0 ? "Nothing looks like a credential or a home folder. A pattern knows only what it knows: look at the file before you share it." : `${whole(data.findings.length)} ${data.findings.length === 1 ? "finding is" : "findings are"} taken out. Tick what may stay, such as a false alarm.`}</p>
    ${data.findings.length > 0 && html`<ul class="findings">${data.findings.map((/** @type {any} */ one) => html`<li key=${one.name}>
      <label><input type="checkbox" checked=${keep.includes(one.name)} onChange=${(/** @type {any} */ event) => choose(one.name, event.target.checked)} /> <span>keep</span> <b>${one.kind}</b> <span class="mono faint">${one.name}</span></label>
      <p class="mono excerpt">${one.excerpt}</p>
      <p class="faint">${whole(one.times)} ${one.times === 1 ? "time" : "times"}, first at ${/^@[0-9]+$/.test(one.place) ? html`<a href=${linkTo("log", { block: one.place })}>${one.place}</a>` : one.place}</p>
    </li>`)}</ul>`}
    ${save}`}<//>`;
}
