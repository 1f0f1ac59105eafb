"""The log of a conversation in a running agent: appends, its fold, dry runs, history, wake-ups of followers."""
