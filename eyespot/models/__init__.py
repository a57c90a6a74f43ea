"""Models that others publish or serve: files, the device they run on, loading that tells what failed, and asking."""
