"""A write that fails anywhere leaves the table before it or after it, and says which.

From the writers of data files to the commit, on catalogs of both kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from built.api_tables import Properties, catalog_in, ids_of, open_table, rows
from built.contents import unused_files
from effort import some
from faulty_writes import (
    CALLS,
    find_table,
    ids_after,
    ids_before,
    ids_now,
    prepare,
    write,
    write_unless_done,
)

from icebergds.errors import AlreadyExistsError, CommitStateUnknownError
from icebergds.testing.faults import Crash, Fault, Faults, When

_CASES = [
    ("filesystem", "append"),
    ("filesystem", "overwrite"),
    ("filesystem", "create"),
    ("sqlite", "append"),
    ("sqlite", "create"),
]
_HALVES = ("write", "write_stream")


def _catalog(directory: Path, catalog: str) -> dict[str, str]:
    directory.mkdir()
    return catalog_in(directory, f"sqlite:///{directory}/c.db" if catalog == "sqlite" else None)


def _at_every_call(
    tmp_path: Path, catalog: str, kind: str, *times: When, pull: int = 12
) -> Iterator[tuple[str, Properties, Callable[[BaseException | Callable[[], object]], Faults]]]:
    """Calls of a write, before, halfway and after them, each with a table; some, unless nightly."""
    counting, faults = _catalog(tmp_path / "count", catalog), Faults(counted=CALLS)
    prepare(counting, kind)
    write(counting, kind, faults)
    calls = list(faults.calls)
    assert {"open_output", "write_stream", "close_stream", "write", "commit"} <= set(calls)
    # Of the many pieces of a data file the first and the last.
    pieces = [number for number, call in enumerate(calls) if call == "write_stream"]
    ways = [
        (number, call, when)
        for number, call in enumerate(calls)
        for when in times
        if number not in pieces[1:-1] and (when is not When.HALFWAY or call in _HALVES)
    ]
    for number, call, when in some(ways, pull):
        place = _catalog(tmp_path / f"{number}-{when}", catalog)
        prepare(place, kind)

        def planned(
            error: BaseException | Callable[[], object], number: int = number, when: When = when
        ) -> Faults:
            return Faults([Fault(number, when, error)], counted=CALLS)

        yield call, place, planned


def _data_files(catalog: Properties) -> set[Path]:
    return set(Path(catalog["warehouse"]).glob("db/t/data/**/*.parquet"))


@pytest.mark.parametrize(("catalog", "kind"), _CASES)
def test_a_crash_leaves_before_or_after(tmp_path: Path, catalog: str, kind: str) -> None:
    landed = set()
    # Before a call is after the one before it.
    for _, place, planned in _at_every_call(tmp_path, catalog, kind, When.HALFWAY, When.AFTER):
        with pytest.raises(Crash):
            write(place, kind, planned(Crash()))
        found = ids_now(place)
        assert found in (ids_before(kind), ids_after(kind))
        landed.add(found == ids_after(kind))
        write_unless_done(place, kind)
        assert ids_now(place) == ids_after(kind)
        open_table(place).append(rows(99))
        assert ids_now(place) == [*ids_after(kind), 99]
    assert landed == {False, True}


@pytest.mark.parametrize(("catalog", "kind"), _CASES)
@pytest.mark.parametrize("error", [PermissionError("denied"), TimeoutError("no answer")])
def test_an_error_tells_what_became_of_the_write(
    tmp_path: Path, catalog: str, kind: str, error: Exception
) -> None:
    for call, place, planned in _at_every_call(tmp_path, catalog, kind, *When):
        before = _data_files(place)
        outcome: Exception | None = None
        try:
            write(place, kind, planned(error))
        except Exception as raised:
            outcome = raised
        found = ids_now(place)
        if outcome is None:
            assert found == ids_after(kind)
        elif isinstance(outcome, CommitStateUnknownError):
            assert call in ("create", "commit")
            assert found in (ids_before(kind), ids_after(kind))
            assert len(_data_files(place)) == len(before) + 1
        else:
            assert found == ids_before(kind)
            assert _data_files(place) == before
            table = find_table(place)
            assert table is None or unused_files(table) == set()
        write_unless_done(place, kind)
        assert ids_now(place) == ids_after(kind)


@pytest.mark.parametrize(("catalog", "kind"), _CASES)
def test_storage_that_stays_away_leaves_before_or_after(
    tmp_path: Path, catalog: str, kind: str
) -> None:
    """From one call on nothing succeeds, nor what would clean up."""
    counting, faults = _catalog(tmp_path / "count", catalog), Faults(counted=CALLS)
    prepare(counting, kind)
    write(counting, kind, faults)
    for first, call in enumerate(faults.calls):
        if call == "write_stream":
            continue
        place = _catalog(tmp_path / str(first), catalog)
        prepare(place, kind)
        gone = [Fault(n, When.BEFORE, TimeoutError("gone")) for n in range(first, first + 50)]
        try:
            write(place, kind, Faults(gone, counted=CALLS))
        except CommitStateUnknownError:
            assert ids_now(place) in (ids_before(kind), ids_after(kind))
        except Exception:
            assert ids_now(place) == ids_before(kind)
        else:
            assert ids_now(place) == ids_after(kind)
        write_unless_done(place, kind)
        assert ids_now(place) == ids_after(kind)


@pytest.mark.parametrize(("catalog", "kind"), [c for c in _CASES if c[1] != "create"])
def test_a_slow_write_goes_together_with_others(tmp_path: Path, catalog: str, kind: str) -> None:
    for _, place, planned in _at_every_call(tmp_path, catalog, kind, When.BEFORE, When.AFTER):
        table = open_table(place)
        write(place, kind, planned(lambda table=table: table.append(rows(50, day=5))))
        found = open_table(place)
        assert ids_of(found) == [*ids_after(kind), 50]
        assert unused_files(found) == set()


@pytest.mark.parametrize("catalog", ["filesystem", "sqlite"])
def test_a_table_made_while_it_is_slowly_created_is_not_mixed_up(
    tmp_path: Path, catalog: str
) -> None:
    winners = []
    times = When.BEFORE, When.AFTER
    for _, place, planned in _at_every_call(tmp_path, catalog, "create", *times, pull=1000):

        def create_other(place: Properties = place) -> None:
            try:
                prepare(place, "append")
            except AlreadyExistsError:
                winners.append("slow")

        try:
            write(place, "create", planned(create_other))
        except AlreadyExistsError:
            winners.append("other")
            assert ids_now(place) == [1, 2]
            assert unused_files(open_table(place)) == set()
        else:
            assert ids_now(place) == [10, 11]
    assert {"slow", "other"} == set(winners)
