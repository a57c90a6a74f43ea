"""Makes judged collections out of what is there: runs, judgements, photos."""
