"""Pin the models of eyespot/models/table.toml: python scripts/pin_models.py [NAME ...], with a connection to the hub.

Prints for each model what the hub has now, as TOML to put into its table: the newest commit, the megabytes of an fp32
download, and the SHA-256 of both towers. Read it, try the model (`eyespot models get`, `models check`), then paste it.
"""

from __future__ import annotations

import sys

from eyespot.encoders import offer
from eyespot.models.table import entries
from eyespot.storage.text_files import toml_text
from eyespot.types import EyespotError


def main() -> None:
    failed = False
    for name in sys.argv[1:] or entries():
        entry = entries()[name].model_copy(update={"revision": "", "sha256": {}})
        try:
            found = offer(entry, "fp32")
        except EyespotError as error:
            print(f"# {name}: {error}")
            failed = True
            continue
        towers = {file.path: file.digest for file in found.files if file.path.endswith(".onnx")}
        pinned = {"revision": found.repository.commit, "mb": round(found.bytes / 1e6), "sha256": towers}
        print(toml_text({name: pinned}))
    sys.exit(failed)


if __name__ == "__main__":
    main()
