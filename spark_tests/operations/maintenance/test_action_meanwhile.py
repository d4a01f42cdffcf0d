"""Tables that are dropped, and files that vanish, while an action runs.

Whatever comes meanwhile comes at any call of the action: the error is one of this package, the
table stays as it is, and new files are removed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from actions import CASES, Place, Places, act
from built.api_tables import TABLE, Properties, create_table, ids_of, open_table, rows
from effort import IS_NIGHTLY

from icebergds.api.catalog import load_catalog
from icebergds.catalog.metadata_files import VERSION_HINT
from icebergds.errors import AlreadyExistsError, IcebergError, NoSuchTableError
from icebergds.testing.faults import Fault, Faults, When
from icebergds.testing.faulty_system import faulty_system

pytestmark = pytest.mark.parametrize(("action", "kind"), CASES)


def _interrupted(
    place: Place, call: int, interruption: Callable[[], object]
) -> tuple[Sequence[str], IcebergError | None]:
    """Runs the action, and something else before a call; returns all calls, and its error."""
    faults = Faults([Fault(call, When.BEFORE, interruption)], counted=None)
    table = place.table
    with faulty_system(faults):
        try:
            act(table, place.action)
        except IcebergError as error:
            return faults.calls, error
    return faults.calls, None


def _calls(place: Place, rng: random.Random) -> list[tuple[int, str]]:
    """The calls to interrupt: one, unless nightly, and none within a transaction."""
    calls, _ = _interrupted(place, -1, lambda: None)
    # Of the many pieces of a file the first.
    found = [
        (number, call)
        for number, call in enumerate(calls)
        if (not call.startswith("sqlite.") or call == "sqlite.connect")
        and (call != "OSFile.write" or calls[number - 1] != call)
    ]
    return found if IS_NIGHTLY else [rng.choice(found)]


def _drop(catalog: Properties) -> None:
    load_catalog("lake", **catalog).drop_table(TABLE)


def _purge(catalog: Properties) -> None:
    load_catalog("lake", **catalog).purge_table(TABLE)


def _replace(catalog: Properties) -> None:
    _drop(catalog)
    for _ in range(500):
        # A commit of just before it may still write its version, and takes it back.
        with suppress(AlreadyExistsError):
            create_table(catalog).append(rows(1, 2))
            return
        time.sleep(0.01)
    raise AssertionError("the version of a table that is dropped was not taken back")


@pytest.mark.parametrize("drop", [_drop, _purge])
def test_a_table_that_is_dropped_meanwhile_stays_dropped(
    places: Places, rng: random.Random, action: str, kind: str, drop: Callable[[Properties], None]
) -> None:
    place = places(action, kind)
    for number, call in _calls(place, rng):
        place.restore()
        left: set[Path] = set()

        def dropped(left: set[Path] = left) -> None:
            drop(place.catalog)
            # A commit of just before it may still write the hint at its version.
            left |= {*place.files_now(), place.root / "metadata" / VERSION_HINT}

        _, outcome = _interrupted(place, number, dropped)
        with pytest.raises(NoSuchTableError):
            open_table(place.catalog)
        named = f"{number} {call}: {type(outcome).__name__} {outcome}"
        assert outcome is None or "db.t" in str(outcome) or "db/t" in str(outcome), named
        if outcome is not None and not outcome.outcome_unknown:
            assert place.files_now() <= left, named


def test_a_table_that_replaces_another_meanwhile_is_left_alone(
    places: Places, rng: random.Random, action: str, kind: str
) -> None:
    place = places(action, kind)
    for number, call in _calls(place, rng):
        place.restore()
        _, outcome = _interrupted(place, number, lambda: _replace(place.catalog))
        new = open_table(place.catalog)
        assert ids_of(new) == [1, 2], f"{number} {call}: {outcome}"
        assert len(new.snapshots()) == 1, f"{number} {call}: {outcome}"


def test_files_that_vanish_meanwhile_are_named_and_nothing_changes(
    places: Places, rng: random.Random, action: str, kind: str
) -> None:
    place = places(action, kind)
    for number, call in _calls(place, rng):
        place.restore()
        file = rng.choice(sorted(path for path in place.files if path.suffix != ".json"))
        _, outcome = _interrupted(place, number, lambda file=file: file.unlink(missing_ok=True))
        named = f"{number} {call}: {outcome}"
        assert outcome is None or file.name in str(outcome), named
        if outcome is not None and "expired, but no file was deleted" not in named:
            assert place.files_now() <= place.files, named
            assert place.table.metadata_location == place.metadata_location, named
