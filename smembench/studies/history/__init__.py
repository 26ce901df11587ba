"""What became of each case over many stored runs: reading them, series, and where a series changed."""
