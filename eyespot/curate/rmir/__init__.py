"""RMIR sets from one's own photos: pictures with questions whose answers are other pictures, found only by reasoning.

`Pipeline(read_recipe(path), work).steps` are the steps for the runner; `write_set` lays out what they made.
"""
