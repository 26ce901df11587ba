"""Matrix multiplications of other libraries."""
