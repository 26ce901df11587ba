"""Sums of other libraries."""
