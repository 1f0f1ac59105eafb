"""Full-text search, whatever stores the text: words, matches, snippets."""
