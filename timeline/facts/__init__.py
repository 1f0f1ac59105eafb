"""Facts: what was done and named in a log, read from its blocks by pure rules with a form number."""
