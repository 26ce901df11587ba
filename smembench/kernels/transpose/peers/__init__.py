"""Transposes of other libraries."""
