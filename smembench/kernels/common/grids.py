"""Launch grids that cover a matrix, ragged edges included."""

from smembench.model.case import Block, Case

SM_THREADS = 2048
"""Most threads per SM (compute capabilities 8.0, 9.0 and 10.0)."""


def ceil_div(whole: int, part: int) -> int:
    """The number of parts that cover the whole."""
    return -(-whole // part)


def block_of(case: Case) -> Block:
    """The block of a case whose kernel has one."""
    assert case.block is not None, case.id
    return case.block


def covering(columns: int, rows: int, block: Block) -> tuple[int, int]:
    """Grid (x, y) of blocks over ``columns`` × ``rows`` elements, one thread per element."""
    return ceil_div(columns, block.x), ceil_div(rows, block.y)


def tile_width(case: Case) -> int:
    """Columns of the shared tile, padding included."""
    return block_of(case).x + (case.pad or 0)


def tile_elements(case: Case) -> int:
    """Elements of one block's tile, padding included."""
    return block_of(case).y * tile_width(case)


def square_only(case: Case) -> str | None:
    """The refusal of a block that is not square, or None."""
    block = block_of(case)
    return None if block.x == block.y else f"{case.kernel} needs a square block, not {block}"


def threads_of(case: Case) -> int:
    """Threads of a block, for kernels over one dimension: they are counted along x, then y."""
    block = block_of(case)
    return block.x * block.y
