"""Queries, and the stages that answer them: what is asked, in words, pictures or both, to ranked pictures."""
