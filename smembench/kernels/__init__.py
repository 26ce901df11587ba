"""Kernels: a folder per problem, in it `problem.py` and a file per kernel; see `problems.py` and `registry.py`."""
