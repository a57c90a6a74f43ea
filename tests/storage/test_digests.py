"""Digests stand on disk, so they are compared with what other programs print and with what stood there before."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.storage.digests import file_blake2b, file_sha256, json_sha256, text_digest

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-4, appendix B.1


def test_the_digest_of_a_file_is_that_of_the_standard(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")

    assert file_sha256(tmp_path / "abc") == ABC
    assert text_digest("abc") == ABC[:16]


@pytest.mark.parametrize(("program", "digest"), [(["sha256sum"], file_sha256), (["b2sum", "-l", "128"], file_blake2b)])
def test_a_large_file_has_the_digest_that_coreutils_print(tmp_path: Path, program: list[str], digest: object) -> None:
    if not shutil.which(program[0]):
        pytest.skip(f"no {program[0]} here")
    place = tmp_path / "large"
    place.write_bytes(bytes(range(256)) * 5000)

    printed = subprocess.run([*program, str(place)], capture_output=True, text=True, check=True).stdout

    assert digest(place) == printed.split()[0]  # type: ignore[operator]


def test_texts_have_the_digest_that_stands_in_ledgers() -> None:
    assert text_digest("a", "b") != text_digest("ab")
    assert text_digest("caf\udce9.jpg") == "c588637f3b9832f5"
    assert json_sha256([[1.0, "windmill", None]]) == "dd4a9b5da1fd196674e30eb92a92f33338ac644bd6d48ec488cf93b45f0bb7bd"


@given(st.dictionaries(st.text(), st.integers()))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    assert json_sha256(value) == json_sha256(dict(reversed(value.items())))
