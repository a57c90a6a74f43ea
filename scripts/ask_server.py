"""Start `eyespot serve` in this folder and ask it for a page, a search and its API, as a browser would; 0 if all come.

python scripts/ask_server.py
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from urllib.request import urlopen

PAGES = ("", "docs", "healthz", "v1/search?q=a+windmill&limit=3")


def main() -> int:
    """Whatever is not answered with 200 ends in urllib's error."""
    with subprocess.Popen(["eyespot", "serve", "--port", "0"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        note = server.stderr.readline()
        address = re.search(r"look at (\S+);", note)
        try:
            if address is None:
                print(note + server.stderr.read(), file=sys.stderr)
                return 1
            for page in PAGES:
                with urlopen(address[1] + page, timeout=60) as answer:
                    print(answer.status, page or "/")
        finally:
            server.send_signal(signal.SIGINT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
