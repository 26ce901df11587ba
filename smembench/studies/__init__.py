"""Computation behind the commands: measure, compare, explain, tune, …; a file or folder per command. Prints nothing."""
