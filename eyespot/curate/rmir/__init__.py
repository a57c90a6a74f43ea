"""RMIR sets from one's own photos: pictures with questions whose answers are other pictures, found only by reasoning.

`pipeline.RmirPipeline(read_recipe(path), out).steps` are the steps; `making.write_set` lays out what they made.
"""
