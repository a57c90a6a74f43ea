"""ReCoS sets from your own photos: twelve kinds of everyday retrieval, captions that tell similar pictures apart.

`making.RecosJob(recipe_at(path), out).steps` are the steps; `RecosJob.write` lays out what they made.
"""
