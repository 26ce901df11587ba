"""Run the documents' listings, mistakes included, and compare what they do with what they should do.

A lesson is a module of this package with a ``LESSON``; its name and subject are here, for help and lists.
"""

LESSONS = {
    "barrier": "what a missing __syncthreads does to transposeSmem",
    "fence": "a message through global memory, with and without __threadfence",
    "divergence": "a barrier that not all threads of a block reach",
    "bounds": "the slides' transposeSmem as written, on matrices that are not square",
    "reuse": "how often tiles let an element be read: the blog's 4×4 product in tiles of 2×2",
    "symbols": "the guide's __constant__ and __device__ variables, filled and read by the host",
    "scope": "shared memory at file scope, constants, a texture, blocks: who sees what, and for how long",
}
