"""Which sessions are run, and what counts as seen."""
