"""ReCoS sets from your own photos: twelve kinds of everyday retrieval, captions that tell similar pictures apart.

`Making(recipe_at(path), out).steps` are the steps for the runner; `Making.write` lays out what they made.
"""
