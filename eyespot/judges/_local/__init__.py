"""Judges whose model runs on this machine: its files, its batches, and how each family of models is asked."""
