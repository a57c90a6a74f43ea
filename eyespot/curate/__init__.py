"""Makes judged collections out of what is there: runs, judgements, photos; and captions to train on."""
