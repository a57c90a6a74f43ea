"""Pictures and words to vectors of one space: one file per encoder, each with `load(name, **options)`."""
