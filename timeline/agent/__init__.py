"""The parts of `Timeline` that serve an agent's loop: record replies, message lists and streams, and read back."""
