"""A collection like iNat24: from millions of observations to a balanced, licensed and documented set of pictures."""
