"""Galleries from and to the formats of others: what comes in, what goes out, and albums of hits."""
