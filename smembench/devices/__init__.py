"""Devices that run kernels, behind one protocol: their memory, timers and telemetry."""
