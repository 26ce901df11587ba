"""Exercises: kernels that students complete or repair, graded without a GPU by what their PTX does."""
