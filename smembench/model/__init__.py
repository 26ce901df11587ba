"""The words of the benchmark: cases, problems, devices, measurements, errors, and facts about the hardware."""
