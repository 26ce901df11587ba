"""Simulated nights whose truth is known, and a study of what the verdicts make of them."""
