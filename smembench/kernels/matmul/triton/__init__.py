"""Matrix products in Triton."""
