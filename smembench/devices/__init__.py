"""Where kernels run: devices behind one protocol, with their memory, timers and telemetry."""
