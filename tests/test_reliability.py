"""docs/reliability.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]


def test_every_test_that_the_page_names_is_there():
    page = (CHECKOUT / "docs" / "reliability.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page)

    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (CHECKOUT / path).is_file()
        or not re.search(rf"^def {name}\(", (CHECKOUT / path).read_text(), re.MULTILINE)
    ]

    assert len(named) > 40
    assert missing == []
