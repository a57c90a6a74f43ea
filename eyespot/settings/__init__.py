"""What users can set, each setting once: its name, default, bounds and help.

    SearchSettings.read(by="look", neighbours=5)

The command line makes options of these models, the page and the API take them as parameters, `eyespot.toml` and
`EYESPOT_*` fill them, Python takes them as keyword arguments, and the table of `docs/settings.md` is printed from
them.
"""
