"""Names that mean one thing: species in several languages, synonyms, and what belongs to a higher taxon."""
