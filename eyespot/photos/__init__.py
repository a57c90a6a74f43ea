"""Photos where they lie: found in folders, tars and lists, decoded safely, with the labels beside them."""
