"""Pictures that the server keeps: thumbnails of the gallery, and what people bring to search with."""
