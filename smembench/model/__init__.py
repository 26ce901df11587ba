"""The types that every other room uses: cases, problems, devices, measurements, errors, and facts about hardware."""
