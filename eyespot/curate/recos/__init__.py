"""ReCoS sets from one's own photos: twelve kinds of everyday retrieval, captions that tell a picture from its like.

`Making(recipe_at(path), out).steps` are the steps for the runner; `Making.write` lays out what they made.
"""
