"""The tiling of unrolled under the name by which its port to CUDA C imports it."""

from smembench.kernels.matmul.cuda.unrolled import tiling_of as tiling_of
