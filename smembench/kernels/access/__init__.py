"""Access patterns of shared memory, and nothing else: tiles written and read pass after pass."""
