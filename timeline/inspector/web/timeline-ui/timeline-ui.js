// Small elements for the chat page of an application, over the stream of `timeline.inspector.stream`. They need nothing
// else, and each works without the others:
//
//   <script type="module" src="/timeline/timeline-ui/timeline-ui.js"></script>
//   <tl-context-usage src="/timeline/v1/conversations/ID/events"></tl-context-usage>

import { ContextDebug } from "./debug.js";
import { CompactionError } from "./error.js";
import { CompactionGuard } from "./guard.js";
import { CompactionIndicator } from "./indicator.js";
import { CompactionSummary } from "./summary.js";
import { ContextUsage } from "./usage.js";

export { Feed, StreamFeed, give, take } from "./feed.js";
export { after, begin, fromStatus, isCompacting } from "./state.js";
export { CompactionError, CompactionGuard, CompactionIndicator, CompactionSummary, ContextDebug, ContextUsage };

const ELEMENTS = {
  "tl-compaction-indicator": CompactionIndicator,
  "tl-context-usage": ContextUsage,
  "tl-compaction-error": CompactionError,
  "tl-compaction-summary": CompactionSummary,
  "tl-context-debug": ContextDebug,
  "tl-compaction-guard": CompactionGuard,
};

for (const [name, element] of Object.entries(ELEMENTS)) {
  if (customElements.get(name) === undefined) customElements.define(name, element);
}
