// The policies that a log can be run again under, by name: presets first, then designs that others published.

export const POLICIES = [
  "balanced", "economical", "gentle", "cut_point", "priority_chain", "prune_then_summarize", "keep_ratio", "keep_last", "none",
  "claude-code", "anthropic-compact", "clear-tool-uses", "opencode", "pi", "cline", "goose", "gemini-cli", "langchain", "deepagents", "crush", "strands",
  "seed-002-first",
];
