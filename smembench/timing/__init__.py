"""How long: clocks, the stop rule, and the summary of samples."""
