"""What a terminal shows of each study."""
