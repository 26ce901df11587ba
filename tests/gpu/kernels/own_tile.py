"""transposeSmem under a name of its own, with a tile as OWN_TILE_PAD says: what somebody changes between two nights."""

from __future__ import annotations

import os
from dataclasses import replace

from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.cuda import transpose_smem
from smembench.model.case import Case

PAD = int(os.environ.get("OWN_TILE_PAD", "1"))


def build(case: Case) -> NumbaKernel:
    return transpose_smem.build(replace(case, pad=PAD))


def tile_elements(case: Case) -> int:
    return transpose_smem.KERNEL.tile_elements(replace(case, pad=PAD))


KERNEL = replace(transpose_smem.KERNEL, name="ownTile", build=build, pad=None, tile_elements=tile_elements, ladder="")
