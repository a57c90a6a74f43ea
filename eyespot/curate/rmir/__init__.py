"""RMIR sets from one's own photos: pictures with questions whose answers are other pictures, found only by reasoning.

`making.RmirJob(read_recipe(path), out).pipeline().steps` are the steps; `making.write_set` lays out what they made.
"""
