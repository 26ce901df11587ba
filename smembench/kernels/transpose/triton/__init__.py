"""Transposes in Triton."""
