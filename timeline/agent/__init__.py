"""What an agent's loop asks of its timeline: replies, message lists and streams into the log, and reading back."""
