"""The ladder of a problem: each step's gain in a run, and what a step changes from the step before."""
