"""Launches of any kernel: where it lies, its arguments, grid and block."""
