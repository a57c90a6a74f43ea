"""The ledger: one SQLite file that remembers what is done, what failed and why, through a kill at any moment.

Every room that keeps a record brings its own tables (`CREATE TABLE IF NOT EXISTS …`) and shares this file, which
`storage/sqlite.py` opens.
"""
