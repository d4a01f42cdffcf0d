"""Fixtures of the tests of maintenance."""

from __future__ import annotations

import pytest
from actions import Place, Places


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """Tables that are made once and put back before each use."""
    made: dict[tuple[str, str], Place] = {}

    def place(action: str, kind: str) -> Place:
        # What these do, other tables have no use for.
        key = kind, action if action in ("dangling", "repair") else ""
        if key not in made:
            made[key] = Place(tmp_path_factory.mktemp("place"), kind, action)
        made[key].action = action
        made[key].restore()
        return made[key]

    return place
