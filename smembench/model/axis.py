"""Axes that a user can vary: keys of a sweep, and options of a problem's command."""

from __future__ import annotations

from dataclasses import dataclass

from smembench.model.case import Block


@dataclass(frozen=True, slots=True)
class Axis:
    """A key of a sweep, and the option of this name of the problem's command.

    ``default`` is the text in ``--help``, ``values`` are the default values of a parameter.
    """

    name: str
    help: str
    default: str = ""
    values: tuple[int, ...] = ()


DEFAULT_BLOCKS = (Block(32, 32), Block(16, 16))
BLOCK = Axis("block", "Block dimensions in threads.", f"{','.join(map(str, DEFAULT_BLOCKS))} or the kernel's")
PAD = Axis("pad", "Run the padded twin beside each kernel that has one; --no-pad: skip the padded kernels.")
PAD_WIDTH = Axis("pad_width", "Extra columns of a padded tile.", "1")
