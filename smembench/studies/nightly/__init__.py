"""A night's run: what it is compared with, which old runs are removed, and files for a monitoring system."""
