"""ReCoS sets from your own photos: twelve kinds of everyday retrieval, captions that tell similar pictures apart.

`pipeline.RecosPipeline(read_recipe(path), out).steps` are the steps; `making.write` lays out what they made.
"""
