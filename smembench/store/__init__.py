"""Result files: the schema of cases.csv, the journal of a run, and its folder."""
