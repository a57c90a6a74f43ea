"""What a gallery's columns say of a photo's licence and author, however they are spelled."""

from __future__ import annotations

from typing import Any

import pytest

from eyespot.photos.attribution import Attribution, attribution_of


@pytest.mark.parametrize(
    ("facts", "attribution"),
    [
        ({"licence": "CC0", "author": "Ada", "source": "https://a"}, Attribution("CC0", "Ada", "https://a")),
        ({"license": "CC BY 4.0", "rightsHolder": "Ada", "recordedBy": "Bo"}, Attribution("CC BY 4.0", "Ada", None)),
        (
            {"License": "CC BY 4.0", "owner_name": " Ada ", "URL": "https://a"},
            Attribution("CC BY 4.0", "Ada", "https://a"),
        ),
        ({"licence": "", "license": "CC0", "rights_holder": None}, Attribution("CC0", None, None)),
        ({"author": "Ada", "source": "https://ada.example"}, Attribution()),  # a private photo names nobody
        ({"licence": "CC0", "latitude": 1.0, "title": "Ada"}, Attribution("CC0", None, None)),
    ],
)
def test_attribution_is_found_by_the_names_of_columns(facts: dict[str, Any], attribution: Attribution) -> None:
    assert attribution_of(facts) == attribution
