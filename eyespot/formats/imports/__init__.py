"""Vectors and facts that others computed: one file for each format, and what they share."""
