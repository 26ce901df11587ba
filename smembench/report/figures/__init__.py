"""Figures as pure functions of stored rows and samples. One kind a file."""
