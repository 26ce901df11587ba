"""Result files: the schema of cases.csv, run.json, the journal of a run, and its folder."""
