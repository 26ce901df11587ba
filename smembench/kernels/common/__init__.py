"""What kernels of several problems share."""
