"""Tables that are dropped, and files that vanish, while an action runs.

Whatever comes meanwhile comes at any call of the action: the error is one of this package, the
table stays as it is, and new files are removed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from actions import ACTIONS, CATALOGS, Place, act
from effort import IS_NIGHTLY

from icebergds.api.catalog import load_catalog
from icebergds.catalog.metadata_files import VERSION_HINT
from icebergds.errors import IcebergError, NoSuchTableError
from icebergds.testing.api_tables import TABLE, Properties, create_table, ids_of, open_table, rows
from icebergds.testing.faults import Fault, Faults, When
from icebergds.testing.faulty_system import faulty_system

_CASES = [
    (action, kind)
    for number, action in enumerate(ACTIONS)
    for kind in (CATALOGS if IS_NIGHTLY else CATALOGS[number % 2 :][:1])
]


@pytest.fixture(scope="module", params=_CASES, ids="-".join)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Place, Sequence[str]]:
    """A table for an action, and the calls of the action."""
    action, kind = request.param
    made = Place(tmp_path_factory.mktemp("place"), kind, action)
    return made, _interrupted(made, -1, lambda: None)[0]


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


def _calls(calls: Sequence[str], rng: random.Random, count: int) -> list[int]:
    """The calls to interrupt: some, unless nightly, and none within a transaction."""
    # Of the many pieces of a file the first.
    found = [
        number
        for number, call in enumerate(calls)
        if (not call.startswith("sqlite.") or call == "sqlite.connect")
        and (call != "OSFile.write" or calls[number - 1] != call)
    ]
    return found if IS_NIGHTLY else rng.sample(found, min(count, len(found)))


def _drop(catalog: Properties) -> None:
    load_catalog("lake", **catalog).drop_table(TABLE)


def _purge(catalog: Properties) -> None:
    load_catalog("lake", **catalog).purge_table(TABLE)


def _replace(catalog: Properties) -> None:
    _drop(catalog)
    create_table(catalog).append(rows(1, 2))


@pytest.mark.parametrize("drop", [_drop, _purge])
def test_a_table_that_is_dropped_meanwhile_stays_dropped(
    place: tuple[Place, Sequence[str]], rng: random.Random, drop: Callable[[Properties], None]
) -> None:
    table, calls = place
    for call in _calls(calls, rng, 2):
        table.restore()
        left: set[Path] = set()

        def dropped(left: set[Path] = left) -> None:
            drop(table.catalog)
            # A commit of just before it may still write the hint at its version.
            left |= {*table.files_now(), table.root / "metadata" / VERSION_HINT}

        _, outcome = _interrupted(table, call, dropped)
        with pytest.raises(NoSuchTableError):
            open_table(table.catalog)
        named = f"{calls[call]} {call}: {type(outcome).__name__} {outcome}"
        assert outcome is None or "db.t" in str(outcome) or "db/t" in str(outcome), named
        if outcome is not None and not outcome.outcome_unknown:
            assert table.files_now() <= left, named


def test_a_table_that_replaces_another_meanwhile_is_left_alone(
    place: tuple[Place, Sequence[str]], rng: random.Random
) -> None:
    table, calls = place
    for call in _calls(calls, rng, 2):
        table.restore()
        _, outcome = _interrupted(table, call, lambda: _replace(table.catalog))
        new = open_table(table.catalog)
        assert ids_of(new) == [1, 2], f"{calls[call]} {call}: {outcome}"
        assert len(new.snapshots()) == 1, f"{calls[call]} {call}: {outcome}"


def test_files_that_vanish_meanwhile_are_named_and_nothing_changes(
    place: tuple[Place, Sequence[str]], rng: random.Random
) -> None:
    table, calls = place
    for call in _calls(calls, rng, 3):
        table.restore()
        file = rng.choice(sorted(path for path in table.files if path.suffix != ".json"))
        _, outcome = _interrupted(table, call, lambda file=file: file.unlink(missing_ok=True))
        named = f"{calls[call]} {call}: {outcome}"
        assert outcome is None or file.name in str(outcome), named
        if outcome is not None and "expired, but no file was deleted" not in named:
            assert table.files_now() <= table.files, named
            assert table.table.metadata_location == table.metadata_location, named
