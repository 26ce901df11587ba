"""Terminal output of the studies."""
