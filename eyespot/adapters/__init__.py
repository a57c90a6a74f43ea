"""Query → its own view of the space: one file or folder for each way of adapting a search."""
