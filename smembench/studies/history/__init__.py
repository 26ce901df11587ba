"""The time of each case over many stored runs: reading the runs, series, and where a series changed."""
