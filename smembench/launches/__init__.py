"""Launches of any kernel: its file, arguments, grid and block."""
