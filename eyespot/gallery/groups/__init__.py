"""Groups of a gallery: near-duplicates, bursts, and what of them is kept on disk."""
