"""Judges: a query and a picture in, a verdict out. A file here is a judge; its `load` makes it.

A judge's module says what it is in four constants: `SPELLING` (how to name one), `KIND` (endpoint, local model, …),
`OFFLINE` (True, False, or in words when) and `NEEDS`; `OPTIONS`, where it has any, maps the name of what a user may say
of it on the command line to its type. `load(rest, **options)` reaches for no network. `_asking` puts pairs to a judge
and keeps what it says in the ledger; judges know nothing of the ledger.
"""
