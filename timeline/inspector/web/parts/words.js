// The names and signs of kinds and states, the same in every view. A state has a shape and a word, never only a colour.

/** @type {Record<string, { label: string, sign: string, about: string }>} */
export const STATES = {
  visible: { label: "sent", sign: "●", about: "the model sees it in full" },
  carried: { label: "carried", sign: "◆", about: "inside a covered range, but kept word for word" },
  abridged: { label: "abridged", sign: "◕", about: "the model sees it without passages that the context has elsewhere, or without most line numbers" },
  hidden: { label: "hidden", sign: "◐", about: "the model sees a short replacement" },
  omitted: { label: "left out", sign: "∅", about: "the model sees nothing of it" },
  covered: { label: "covered", sign: "○", about: "a summary stands for it" },
  redacted: { label: "redacted", sign: "■", about: "its content was erased" },
  deleted: { label: "removed", sign: "✕", about: "it was removed from the log" },
  not_yet: { label: "not yet", sign: "·", about: "it came later" },
};

/** @param {string | null | undefined} state */
export function stateOf(state) {
  return STATES[(state ?? "visible").replace(" ", "_")] ?? { label: state ?? "", sign: "●", about: "" };
}

/** @type {Record<string, { label: string, kind: string }>} */
const TYPES = {
  "user.prompt": { label: "User", kind: "user" },
  "user.attachment": { label: "Attachment", kind: "user" },
  "assistant.completion": { label: "Assistant", kind: "assistant" },
  "assistant.reasoning": { label: "Thinking", kind: "reasoning" },
  "react.tool.call": { label: "Call", kind: "call" },
  "react.tool.result": { label: "Result", kind: "result" },
  "conv.range.summary": { label: "Summary", kind: "summary" },
  "system.message": { label: "System", kind: "system" },
  "turn.header": { label: "Turn", kind: "system" },
  note: { label: "Note", kind: "note" },
  "stage.digest": { label: "Stages", kind: "note" },
  "model.called": { label: "Model call", kind: "event" },
  "context.rendered": { label: "Context", kind: "event" },
  "compaction.completed": { label: "Compaction", kind: "summary" },
  "blocks.hidden": { label: "Blocks", kind: "event" },
};

/** @param {string} type */
export function typeOf(type) {
  const known = TYPES[type];
  if (known) return known;
  const words = type.replace(/[._]/g, " ");
  return { label: words.charAt(0).toUpperCase() + words.slice(1), kind: "event" };
}

/** The shares of a context from the ground up, as the chart stacks them. The first name of each is its colour's. */
export const SHARES = [
  { name: "fixed", label: "system and tools" },
  { name: "system", label: "system" },
  { name: "tools", label: "tools" },
  { name: "summaries", label: "summaries" },
  { name: "prompts", label: "prompts" },
  { name: "completions", label: "answers" },
  { name: "reasoning", label: "thinking" },
  { name: "calls", label: "calls" },
  { name: "results", label: "results" },
  { name: "hidden", label: "replacements" },
  { name: "notes", label: "notes" },
  { name: "tail", label: "tail" },
  { name: "other", label: "other" },
];

/** The shares that a fill has, in their order, those without a place of their own behind. @param {Record<string, number>[]} fills */
export function sharesIn(fills) {
  const there = new Set(fills.flatMap((fill) => Object.keys(fill).filter((name) => fill[name] > 0)));
  const known = SHARES.filter((share) => there.delete(share.name));
  return [...known, ...[...there].sort().map((name) => ({ name, label: name.replaceAll("_", " ") }))];
}
