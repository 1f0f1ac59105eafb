"""Full-text search for any store: words, matches, snippets."""
