"""Drawn pictures: sums by hand, programs, signs; each painted from what is written in its record and nothing else."""
