"""From a config to trials: the plan, the worker process, sampling and the stop rule."""
