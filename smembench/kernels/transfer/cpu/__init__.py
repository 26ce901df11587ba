"""The host's own copy."""
