"""Copies between host and device, through the CUDA runtime."""
