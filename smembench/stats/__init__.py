"""Statistics of elapsed times: summaries, intervals, noise, change points. Knows nothing of kernels or runs."""
