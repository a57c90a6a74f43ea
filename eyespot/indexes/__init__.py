"""Indexes: vectors to nearest rows; a file here is an index, its `load(vectors, **options)` opens it."""
