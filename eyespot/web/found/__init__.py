"""What a search finds: the gallery at one moment, rankings that stay as they were, and what they hold in numbers."""
