"""Galleries from and to the formats of others: one file for each format, and what they share."""
