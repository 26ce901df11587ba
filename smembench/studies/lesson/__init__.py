"""Kernels that are wrong on purpose, to show what a mistake does. Not found by the registry unless a lesson runs."""
