"""Licences as sources spell them."""

from __future__ import annotations

import pytest

from eyespot.build.inat.licences import COPYABLE, Licence, checked, licence_of, why_not
from eyespot.types import UsageError


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CC-BY-NC", "CC BY-NC"),
        ("CC0", "CC0 1.0"),
        ("CC_BY_NC_4_0", "CC BY-NC 4.0"),
        ("CC BY-SA-NC 4.0", "CC BY-NC-SA 4.0"),
        ("http://creativecommons.org/licenses/by-nd/2.5/legalcode", "CC BY-ND 2.5"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0 1.0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "PD 1.0"),
        ("Creative Commons Attribution-NonCommercial-NoDerivs 4.0 International", "CC BY-NC-ND 4.0"),
        ("(c) Ann, some rights reserved (CC BY-NC-SA)", "CC BY-NC-SA"),
        ("PD", "PD 1.0"),
    ],
)
def test_a_licence_is_known_however_it_is_spelled(text: str, name: str) -> None:
    licence = licence_of(text)
    assert licence is not None and licence.name == name


@pytest.mark.parametrize("text", ["", "C", "All rights reserved", "all rights reserved, not CC-BY", "standby", "CC"])
def test_what_is_no_licence_is_none(text: str) -> None:
    assert licence_of(text) is None


def test_a_code_without_a_version_takes_that_of_its_source() -> None:
    assert licence_of("CC-BY-SA", "4.0") == Licence("CC BY-SA", "4.0")
    assert Licence("CC BY-SA", "4.0").url == "https://creativecommons.org/licenses/by-sa/4.0/"


def test_why_a_photo_stays_out() -> None:
    assert why_not(None, COPYABLE) == why_not(" ", COPYABLE) == "no licence"
    assert why_not("C", COPYABLE) == "a licence that allows no copying, or none that is known"
    assert why_not("PD", COPYABLE) == "licence PD not wanted"
    assert why_not("CC-BY-NC-ND", COPYABLE) is None


def test_licences_that_a_user_names() -> None:
    assert checked([]) == COPYABLE and checked(["cc0", "by-nc"]) == ("CC0", "CC BY-NC")
    with pytest.raises(UsageError, match="no licence 'free'"):
        checked(["free"])
