"""What a search finds: the gallery at one moment, frozen rankings, and what they hold in numbers."""
