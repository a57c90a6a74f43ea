"""Pairs of a picture and its caption from the sets that QuARI was trained on, as they are published.

Each class of `published` reads one of them. What it makes of a file of the set is a folder of its own,

    OUT/FILE/pictures.parquet      a list for `eyespot index`: file_name, and what the set says of the picture
    OUT/FILE/captions.parquet      for `eyespot train quari GALLERY --captions OUT/`: file_name, caption

and one that is there is not made again. (QuARI, section 4; the sets are fetched by whoever wants them.)
"""
