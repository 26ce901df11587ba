"""Kernels that are wrong on purpose, to show what a mistake does. Not found by the registry unless a lesson runs."""

LESSONS = {"barrier": "what a missing __syncthreads does to transposeSmem"}
