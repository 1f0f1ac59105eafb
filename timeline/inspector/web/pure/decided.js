// What a decision would do, and what it did, in a sentence.

import { counted, short, whole } from "./format.js";

/** The window before and behind it; nothing where its size stays. @param {any} answer */
function sizes(answer) {
  const { before_tokens: before, after_tokens: tokens } = answer;
  const said = short(before) === short(tokens) ? whole : short;
  return before === tokens ? `The window stays at ${short(tokens)} tokens.` : `The window goes from ${said(before)} to ${said(tokens)} tokens.`;
}

/** The blocks that change, the first of them by address. @param {any} answer */
function named(answer) {
  const blocks = answer.blocks.map((/** @type {any} */ block) => `@${block.version}`);
  const more = answer.blocks.length + answer.blocks_left_out - 6;
  return more > 0 ? `${blocks.slice(0, 6).join(", ")} and ${whole(more)} more` : blocks.join(", ");
}

/** What would happen. @param {any} answer of a dry run */
export function tried(answer) {
  switch (answer.decision) {
    case "fork":
      return `${answer.conversation} would share the log up to version ${whole(answer.base)}, with a window of ${short(answer.after_tokens)} tokens. This conversation does not change.`;
    case "undo":
      return `${counted(answer.reverted.length, "compaction")} would be undone: ${answer.reverted.map((/** @type {number} */ version) => `@${version}`).join(", ")}. ${counted(answer.blocks.length + answer.blocks_left_out, "block")} would be shown again. ${sizes(answer)} Nothing is compacted automatically until you compact.`;
    case "compact":
      return `${counted(answer.gone, "block")} would be covered by a summary, which is written here without a model. ${sizes(answer)}`;
    default:
      return `${answer.blocks.length ? `It would change ${named(answer)}.` : "Nothing would change."} ${sizes(answer)}`;
  }
}

/** What happened. @param {any} answer of a decision that was taken */
export function decided(answer) {
  if (answer.decision === "fork") return `${answer.conversation} begins after version ${whole(answer.base)}.`;
  return `Done, as version ${whole(answer.version)} of the log. ${sizes(answer).replace("goes", "went").replace("stays", "stayed")}`;
}
