"""The extras of eyespot: which one brings a package that is missing, and the line that installs it for this Python."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

EXTRAS = {  # the package that is missing → the extra that brings it
    **dict.fromkeys(("torch", "torchvision", "open_clip", "transformers", "huggingface_hub"), "torch"),
    **dict.fromkeys(("fastapi", "h11", "multipart", "starlette", "threadpoolctl", "uvicorn"), "web"),
    "mcp": "mcp",
    "matplotlib": "plots",
    "cv2": "local",
    "watchfiles": "watch",
    "rapidocr": "ocr",
    "faiss": "faiss",
    "ray": "ray",
    **dict.fromkeys(("mteb", "datasets"), "mteb"),
    **dict.fromkeys(("numba", "llvmlite"), "fast"),
    "ai_edge_litert": "inat",
    "ir_measures": "ir",
    "harper": "recos",
    "h5py": "hdf5",
    "fsspec": "remote",
    "openTSNE": "map",
    "rawpy": "raw",
    "av": "video",
    "sentence_transformers": "rerank",
}


def needed(name: str, package: str) -> str:
    """The sentence for `name`, which cannot work without a package: what brings it, and the line to type."""
    if package in EXTRAS:
        return f"{name} needs the extra [{EXTRAS[package]}]: {install_line(EXTRAS[package])}"
    return f"{name} needs the Python package {package}: {pip_line(package)}"


def install_line(extra: str) -> str:
    """What to type so that this eyespot gets an extra, from where it was installed itself."""
    checkout = Path(__file__).resolve().parent.parent
    if (checkout / "pyproject.toml").is_file():
        return pip_line("-e", f"{checkout}[{extra}]")
    # The address that eyespot was installed from, if not an index: a repository, or a file that is still there
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        recorded = json.loads(distribution("eyespot").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        source = None
    else:
        url, repository = recorded.get("url"), recorded.get("vcs_info")
        if repository:
            source = f"{repository['vcs']}+{url}@{repository['commit_id']}"
        else:
            from urllib.request import url2pathname  # which loads http.client and ssl

            here = url and urlsplit(url).scheme == "file"
            source = None if here and not Path(url2pathname(urlsplit(url).path)).exists() else url
    return pip_line(f"eyespot[{extra}] @ {source}" if source else f"eyespot[{extra}]")


def pip_line(*words: str) -> str:
    """A line that installs packages for the Python that runs now, whichever `pip` the shell would find."""
    if find_spec("pip") is None:  # as in the environments of uv
        return shlex.join(["uv", "pip", "install", "--python", sys.executable, *words])
    return shlex.join([sys.executable, "-m", "pip", "install", *words])


def misfit(error: BaseException) -> str | None:
    """The sentence for an error behind which torchvision's operators do not load beside this torch, else None."""
    reason = next((str(link) for link in causes(error) if "torchvision::" in str(link)), "")
    if not reason:
        return None
    from importlib.metadata import version

    pair = f"torchvision {version('torchvision')} does not fit torch {version('torch')} ({reason.splitlines()[0]})"
    way_out = pip_line("--force-reinstall", "torch", "torchvision")
    return f"{pair}, and the model libraries need both; install them from one index, as in: {way_out}"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those behind it, the innermost last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
