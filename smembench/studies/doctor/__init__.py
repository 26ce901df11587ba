"""Whether everything needed is installed, and whether the timers agree with Nsight Compute."""
