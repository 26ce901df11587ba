"""Check the installation, and the timers against Nsight Compute."""
