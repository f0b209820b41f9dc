"""The run directory: what stands in it, how it is written and locked, and what is read back from it."""
