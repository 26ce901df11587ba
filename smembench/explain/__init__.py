"""Why a kernel takes the time it takes, from a trace of the kernel itself and without a GPU."""
