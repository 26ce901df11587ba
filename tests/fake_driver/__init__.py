"""A fake NVIDIA driver, and what makes a GPU's kernels run on the host: see README.md."""
