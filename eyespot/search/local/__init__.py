"""Re-ranking by local descriptors: one file for each way of comparing two pictures by what stands out in them.

A file `NAME.py` with a `load` that gives an `eyespot.types.LocalReranker` is one more way, and so is an entry point of
another package in the group `eyespot.search.local`.
"""

DEPTH = 1000  # hits whose local descriptors are compared
