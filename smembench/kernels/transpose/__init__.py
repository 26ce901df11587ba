"""Kernels of the transpose problem."""

LADDER = (
    "memcpy",
    "copyGmem",
    "naiveGmem",
    "naiveGmemUnroll",
    "transposeSmem",
    "transposeSmemPad",
    "transposeSmemUnroll",
    "transposeSmemUnrollPad",
    "transposeSmemDyn",
    "transposeSmemPadDyn",
    "transposeCoarsened",
    "transposeSwizzled",
    "transposeVectorized",
    "transposeDown",
    "transposeStreamed",
    "transposeHalfWarp",
    "transposePaired",
)
"""The kernels in the order of the lesson, in which tables show them; others come after them."""
