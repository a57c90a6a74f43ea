"""Photos, their facts and their vectors in a folder on disk."""
