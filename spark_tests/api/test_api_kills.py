"""A writer that is killed leaves the table before its write or after it, and is in nobody's way."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from built.api_tables import Properties, catalog_in, open_table, rows
from effort import IS_NIGHTLY, rounds
from faulty_writes import (
    CALLS,
    ids_after,
    ids_before,
    ids_now,
    prepare,
    write,
    write_unless_done,
)
from kill_writers import (
    run_and_kill_after,
    run_and_kill_at,
    run_and_kill_in_transaction,
    seconds_of_a_write,
)

from icebergds.testing.faults import Faults, When

_CATALOGS = ("filesystem", "sqlite")
_KINDS = ("append", "overwrite", "create")
_KILLS = rounds("ICEBERGDS_KILLS", pull=2, nightly=20)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("catalog", _CATALOGS)
def test_killed_at_a_call(tmp_path: Path, rng: random.Random, catalog: str, kind: str) -> None:
    counting, faults = _prepared(tmp_path / "count", catalog, kind), Faults(counted=CALLS)
    write(counting, kind, faults)
    last_piece = len(faults.calls) - 1 - faults.calls[::-1].index("write_stream")
    # Of the pieces of a data file the last; before a call is after the one before it.
    calls = [
        (call, name)
        for call, name in enumerate(faults.calls)
        if name != "write_stream" or call == last_piece
    ]
    if not IS_NIGHTLY:
        at_commit = faults.calls.index("commit")
        calls = [*rng.sample(calls, 3), (at_commit, "commit")]
    landed = []
    for call, name in dict(calls).items():
        place = _prepared(tmp_path / str(call), catalog, kind)
        when = When.HALFWAY if name in ("write", "write_stream") else When.BEFORE
        run_and_kill_at(place, kind, call, when)
        landed.append(_check(place, kind))
    place = _prepared(tmp_path / "committed", catalog, kind)
    run_and_kill_at(place, kind, faults.calls.index("commit"), When.AFTER)
    assert _check(place, kind)
    assert False in landed


@pytest.mark.parametrize("kind", _KINDS)
def test_killed_in_a_transaction(tmp_path: Path, kind: str) -> None:
    place = _prepared(tmp_path / "t", "sqlite", kind)
    run_and_kill_in_transaction(place, kind)
    assert not _check(place, kind)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("catalog", _CATALOGS)
def test_killed_at_any_time(tmp_path: Path, rng: random.Random, catalog: str, kind: str) -> None:
    longest = seconds_of_a_write(_prepared(tmp_path / "whole", catalog, kind), kind)
    for number in range(_KILLS):
        place = _prepared(tmp_path / str(number), catalog, kind)
        run_and_kill_after(place, kind, rng.uniform(0, longest))
        _check(place, kind)


def _prepared(directory: Path, catalog: str, kind: str) -> dict[str, str]:
    directory.mkdir()
    uri = f"sqlite:///{directory}/catalog.db" if catalog == "sqlite" else None
    place = catalog_in(directory, uri)
    prepare(place, kind)
    return place


def _check(catalog: Properties, kind: str) -> bool:
    """Whether the killed writer's write is there; it can be repeated, and others can write."""
    found = ids_now(catalog)
    assert found in (ids_before(kind), ids_after(kind))
    write_unless_done(catalog, kind)
    assert ids_now(catalog) == ids_after(kind)
    open_table(catalog).append(rows(99))
    assert ids_now(catalog) == [*ids_after(kind), 99]
    return found == ids_after(kind)
