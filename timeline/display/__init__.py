"""Text and HTML for people: without control characters that act on a terminal or page, and of bounded length."""
