"""Pictures to the text in them: one file for each engine, each with a `load` that gives an `eyespot.types.TextReader`.

Other packages add theirs by entry points of the group `eyespot.photos.ocr`.
"""
