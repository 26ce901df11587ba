"""Charts as pure functions of stored rows and samples, one kind per file."""
