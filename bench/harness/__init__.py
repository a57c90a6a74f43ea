"""What all benchmarks share: the command line, timing against a peer, a line for each number, and data."""

from bench.harness.command import BenchmarkError, Command, say
from bench.harness.data import (
    DIM,
    ROOT,
    SHARED,
    Floats,
    Reals,
    SyntheticVectors,
    clusters,
    metadata,
    shared,
    vectors_on_disk,
)
from bench.harness.measurement import Measurement
from bench.harness.timing import Race, race, timed

__all__ = [
    "DIM",
    "ROOT",
    "SHARED",
    "BenchmarkError",
    "Command",
    "Floats",
    "Measurement",
    "Race",
    "Reals",
    "SyntheticVectors",
    "clusters",
    "metadata",
    "race",
    "say",
    "shared",
    "timed",
    "vectors_on_disk",
]
