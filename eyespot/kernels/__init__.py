"""Scans at the speed of memory, which indexes and adapters share: int8 codes with a proven bound, and their kernels.

And k-means, which builders share. Only `cache`, `codes`, `rows` and `kmeans` may be imported freely; the others load
numba, half a second that a small gallery never repays.
"""
