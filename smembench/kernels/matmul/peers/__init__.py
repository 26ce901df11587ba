"""Matrix products of other libraries."""
