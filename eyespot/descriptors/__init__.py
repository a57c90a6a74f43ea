"""Pictures to local features: one file for each kind, each with a `load` that gives an `eyespot.types.Extractor`."""
