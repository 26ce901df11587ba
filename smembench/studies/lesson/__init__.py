"""Kernels that are wrong on purpose, to show what a mistake does. The registry finds them only while a lesson runs."""

LESSONS = {"barrier": "what a missing __syncthreads does to transposeSmem"}
