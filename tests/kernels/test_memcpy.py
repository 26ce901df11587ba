from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smembench.kernels.transpose.cuda import memcpy


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 65])
def test_every_element_is_copied_once_in_pieces(monkeypatch: pytest.MonkeyPatch, size: int, dtype: str) -> None:
    pieces: list[int] = []

    def copy(stream: int, target: Any, source: Any) -> None:
        pieces.append(source.nbytes)
        target += source

    monkeypatch.setattr(memcpy, "copy", copy)
    monkeypatch.setattr(memcpy, "MAX_BYTES", 64)
    out, inp = np.zeros(size, dtype), np.arange(1, size + 1).astype(dtype)
    memcpy.enqueue(0, out, inp)
    assert (out == inp).all()
    assert max(pieces) <= 64
    assert len(pieces) == -(-inp.nbytes // 64)
