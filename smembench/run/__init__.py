"""From a config to measurements: the plan, the worker process, trials, samples and the stop rule."""
