"""Models that others publish: their files, the device they run on, and loading that tells what failed."""
