"""Simulated fleets whose slow GPUs are known, and a study of what the verdict makes of them."""
