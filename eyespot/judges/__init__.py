"""Judges: a query and a picture in, a verdict out. A file here is a judge; its `load` makes it."""
