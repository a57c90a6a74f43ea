"""The parts of `served:`: what it can be told, how an input is put to the server, and what comes back."""
