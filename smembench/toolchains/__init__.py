"""What makes machine code of a kernel, a file per toolchain, and what can be read from that code."""
