"""The same commands on a Ray cluster: its workers embed, search and cluster what one machine would take long for."""
