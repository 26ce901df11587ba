"""Functions of PyTorch's."""

import torch


def softmax(input: torch.Tensor, output: torch.Tensor) -> None:
    """The softmax of each row."""
    torch.softmax(input, 1, out=output)
