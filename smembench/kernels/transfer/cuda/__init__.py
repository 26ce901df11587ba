"""Copies between host and device, through the CUDA driver."""
