"""smembench: a benchmark of GPU shared memory in plain Python."""

__version__ = "0.1.0"
