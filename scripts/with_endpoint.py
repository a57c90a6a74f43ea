"""Run a command while a language model's endpoint on this machine, which always says yes, stands for its vendor's.

    python scripts/with_endpoint.py eyespot search "a heron" --rerank openai:gpt-4o-mini

Takes the double of the tests, so `tests` must be importable. Ends with 1 if the command asked nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.worlds.servers import YES, Double, Response, Seen, message


def answer(seen: Seen) -> Response:
    """Yes, as the vendor says it who was asked."""
    return message("10") if seen.path.endswith("/messages") else YES


def main() -> int:
    with Double(then=answer) as double:
        root = double.url.removesuffix("/v1")
        addresses = {"OPENAI_BASE_URL": double.url, "ANTHROPIC_BASE_URL": root}
        keys = {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none"}
        code = subprocess.run(sys.argv[1:], env={**os.environ, **addresses, **keys}).returncode
        return code if double.answered else 1


if __name__ == "__main__":
    sys.exit(main())
