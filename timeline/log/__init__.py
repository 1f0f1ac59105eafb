"""The log as a running agent holds it: appends, the fold kept in step, dry runs, the whole history."""
