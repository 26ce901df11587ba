"""What the kernels compute, with NumPy."""

import numpy as np


def transposed(odata, idata, width, height):
    """The transpose of a matrix."""
    odata[...] = idata.T


def partial_sums(idata, odata, n):
    """The sums of 512 elements each."""
    odata[...] = idata.reshape(-1, 512).astype(np.float64).sum(1)


def product(*arguments):
    """The product of two matrices, added to a part of what is there."""
    *_, alpha, a, b, beta, c = arguments
    c[...] = alpha * (a @ b) + beta * c


def plain_product(a, b, c):
    """The product of two matrices."""
    c[...] = a @ b


def added(x, y, output, *sizes, **constants):
    """The sum of two vectors."""
    output[...] = x + y


def softmax(output, input, *sizes, **constants):
    """The softmax of each row."""
    exponentials = np.exp(input - input.max(1, keepdims=True), dtype=np.float64)
    output[...] = exponentials / exponentials.sum(1, keepdims=True)


def softmax_of(input, output):
    """The softmax of each row, as PyTorch orders the arguments."""
    softmax(output, input)
