"""A write that Ctrl-C stops at any call is in the table or leaves no files, and it says which."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from built.api_tables import catalog_in, create_table, ids_of, open_table, rows
from built.contents import unused_files
from effort import rounds

from icebergds import Table
from icebergds.testing.faults import Fault, Faults, When
from icebergds.testing.faulty_system import faulty_system

_CHANGES = ("os.open", "os.link", "OSFile", "OSFile.write", "OSFile.close", "sqlite.commit")
_INTERRUPTS = rounds("ICEBERGDS_INTERRUPTS", pull=8, nightly=60)
_MODE = "write.upsert.mode"


def _in_transaction(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.append(rows(11, day=1))
        transaction.upsert(rows(2, 10, day=1), ["id", "day"])


def _delta(table: Table) -> None:
    changes = rows(1, 10, day=0).append_column("kind", pa.array(["-D", "+U"]))
    table.delta(changes, "kind", ["id", "day"])


_BEFORE = [1, 2, 3, 4]
_WRITES: Mapping[str, tuple[Callable[[Table], object], list[int]]] = {
    "append": (lambda table: table.append(rows(10, day=1)), [*_BEFORE, 10]),
    "overwrite": (lambda table: table.overwrite(rows(10, day=1), "day = 1"), [1, 3, 10]),
    "upsert": (
        lambda table: table.upsert(rows(2, 10, day=1), ["id", "day"]),
        [*_BEFORE, 10],
    ),
    "upsert by equality deletes": (
        lambda table: table.upsert(
            rows(2, 10, day=1), ["id", "day"], options={_MODE: "equality-deletes"}
        ),
        [*_BEFORE, 10],
    ),
    "upsert of a reader": (
        lambda table: table.upsert(rows(2, 10, day=1).to_reader(), ["id", "day"]),
        [*_BEFORE, 10],
    ),
    "delete": (lambda table: table.delete_keys(rows(1, 3, day=0), ["id", "day"]), [2, 4]),
    "delta": (_delta, [2, 3, 4, 10]),
    "transaction": (_in_transaction, [*_BEFORE, 10, 11]),
}


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """What starts the tests may ignore it, as shells do for jobs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", _WRITES)
def test_a_write_is_interrupted_at_any_call(
    tmp_path: Path, rng: random.Random, kind: str, version: int
) -> None:
    write, after = _WRITES[kind]
    now, before = tmp_path / "now", tmp_path / "before"
    now.mkdir()
    catalog = catalog_in(now, f"sqlite:///{now}/c.db" if version == 2 else None)
    table = create_table(catalog, partition_by="day", version=version)
    table.append(pa.concat_tables([rows(1, 3, day=0), rows(2, 4, day=1)]))
    shutil.copytree(now, before)
    counting = Faults(counted=_CHANGES)
    with faulty_system(counting):
        write(open_table(catalog))
    assert ids_of(open_table(catalog)) == sorted(after)
    calls = [(number, when) for number in range(len(counting.calls)) for when in When]
    for number, when in rng.sample(calls, min(_INTERRUPTS, len(calls))):
        shutil.rmtree(now)
        shutil.copytree(before, now)
        table = open_table(catalog)
        fault = Fault(number, when, lambda: os.kill(os.getpid(), signal.SIGINT))
        error = None
        try:
            with faulty_system(Faults([fault], counted=_CHANGES)):
                write(table)
        except KeyboardInterrupt as interrupt:
            error = interrupt
        table = open_table(catalog)
        is_changed = ids_of(table) != _BEFORE or len(table.snapshots()) > 1
        assert ids_of(table) == (sorted(after) if is_changed else _BEFORE), (number, when)
        assert unused_files(table) == set(), (number, when)
        if error is None:
            assert is_changed
        elif kind != "transaction":
            (note,) = error.__notes__
            assert ("nothing was committed" in note) == (not is_changed), (number, when, note)
