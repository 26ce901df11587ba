"""Result files: schema 1, the journal of a run, and its folder. Knows nothing of Rich or of devices."""
