"""Proof of a log: contexts rebuilt as they were sent, and every invariant checked."""
