"""Pin the models of eyespot/models/table.toml: python scripts/pin_models.py [NAME ...], with a connection to the hub.

Gets each model at the hub's newest commit into EYESPOT_MODELS and prints TOML to put into its table: the commit, the
megabytes of an fp32 download, the SHA-256 of both towers, and the first numbers of the vectors of two pictures and four
texts (`golden`), with which `eyespot models check` compares. Try the model (docs/use/models.md), then paste it: a model
that is called `released` has to have all of this, as a test says.
"""

from __future__ import annotations

import sys

from eyespot.encoders import encoder_of, get, offer, probe
from eyespot.encoders._installing import GOLDEN
from eyespot.models.table import entries
from eyespot.storage.text_files import toml_text
from eyespot.types import EyespotError


def main() -> None:
    failed = False
    for name in sys.argv[1:] or entries():
        entry = entries()[name].model_copy(update={"revision": "", "sha256": {}})
        try:
            found = offer(entry, "fp32")
            made = probe(encoder_of(get(entry, "fp32", found)))  # (6, dim)
        except EyespotError as error:
            print(f"# {name}: {error}")
            failed = True
            continue
        towers = {file.path: file.digest for file in found.files if file.path.endswith(".onnx")}
        pinned = {"revision": found.repository.commit, "mb": round(found.bytes / 1e6), "sha256": towers}
        golden = [[round(float(number), 5) for number in row[:GOLDEN]] for row in made]
        print(toml_text({name: pinned | {"released": True, "golden": {"fp32": golden}}}))
    sys.exit(failed)


if __name__ == "__main__":
    main()
