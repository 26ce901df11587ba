"""``smembench report``: stored runs as one HTML file, and single figures for slides. Reads files, never a device."""
