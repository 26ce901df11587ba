"""The smallest change that counts, as a fraction, wherever runs or devices are compared and nobody gives another."""

THRESHOLD = 0.005
THRESHOLD_PERCENT = f"{100 * THRESHOLD:g}"
"""The same as a help text has it."""
