"""Galleries in the formats of other programs: one file for each format.

A file has `ABOUT` (one line of help), `OPTIONS` (names of those in `ExportOptions` that it follows) and
`write(rows, folder)`, which fills an empty folder and returns how many pictures it wrote. `eyespot export NAME` runs
it; the folder appears when it is complete.
"""
