"""A map of a gallery: its photos by look in two dimensions, computed once, and new ones placed by their neighbours."""
