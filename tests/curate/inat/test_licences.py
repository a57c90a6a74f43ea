"""Licences as sources spell them."""

from __future__ import annotations

import pytest

from eyespot.curate.inat.settings import COPYABLE, KINDS, Licence, checked, licence_of, why_not
from eyespot.types import UsageError
from tests.wording import raises


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
        ("Creative Commons Attribution Non Commercial (CC-BY-NC) 4.0 License", "CC BY-NC 4.0"),
        ("Creative Commons Attribution Share Alike 4.0", "CC BY-SA 4.0"),
        ("Creative Commons Attribution 4.0 International (CC BY 4.0)", "CC BY 4.0"),
        ("Attribution-NonCommercial-ShareAlike 4.0 International", "CC BY-NC-SA 4.0"),
        ("CC BY 4.0 https://creativecommons.org/licenses/by/4.0/", "CC BY 4.0"),
        ("https://creativecommons.org/licenses/by-sa/3.0/de/deed.en", "CC BY-SA 3.0"),
        ("CC0 1.0 Universal (CC0 1.0) Public Domain Dedication", "CC0 1.0"),
        ("Creative Commons Zero v1.0 Universal", "CC0 1.0"),
        ("(c) Bo, some rights reserved (CC BY), uploaded by Ann", "CC BY"),
        ("(c) Bo, no rights reserved (CC0)", "CC0 1.0"),
        ("by-nc", "CC BY-NC"),
    ],
)
def test_a_licence_is_known_however_it_is_spelled(text: str, name: str) -> None:
    licence = licence_of(text)
    assert licence is not None and licence.name == name


@pytest.mark.parametrize("kind", KINDS)
def test_name_and_address_of_a_licence_are_it_again(kind: str) -> None:
    licence = Licence(kind, "1.0" if kind in ("CC0", "PD") else "4.0")
    assert licence_of(licence.name) == licence_of(licence.url) == licence


@pytest.mark.parametrize(
    "text",
    [
        *("", "C", "All rights reserved", "all rights reserved, not CC-BY", "standby", "CC", "NC-SA", "Attribution"),
        *("By permission of the copyright holder", "by John Smith", "by Nd", "Zero"),
        *("Ground Zero Photography, all rights reserved", "CC0, all rights reserved"),
        "(c) Some, all rights reserved, some rights reserved (CC BY)",
        *("CC BY or CC BY-NC", "CC BY / CC BY-NC", "CC BY, BY-NC", "CC BY 3.0, CC BY 4.0", "CC BY 4.0 NC"),
        *("not CC BY", "CC BY for members", "CC0 but for the logo", "UNSPECIFIED"),
    ],
)
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
    with raises(UsageError):
        checked(["free"])
