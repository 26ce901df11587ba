"""What a night's run is held against, which old runs go, and what a monitoring system is told. Prints nothing."""
