"""Writers at once, some of them killed, never lose the key of a snapshot or a file."""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pytest
from built.api_tables import catalog_in, create_table, open_table, rows
from effort import scaled
from processes import CONTEXT
from race_writers import PATIENT, id_of

from icebergds import Table
from icebergds.errors import CommitConflictError, MissingFileError

_Act: TypeAlias = Callable[[Table, int, int], Sequence[int]]
"""Commits as writer of a number for the so many-th time; the ids of rows that it has added."""

_COMMITS = scaled(32)


def _append(table: Table, writer: int, number: int) -> Sequence[int]:
    ids = [id_of(writer, number)]
    table.append(rows(*ids, day=writer))
    return ids


def _transact(table: Table, writer: int, number: int) -> Sequence[int]:
    ids = [id_of(writer, 2 * number), id_of(writer, 2 * number + 1)]
    with table.transaction() as transaction:
        for each in ids:
            transaction.append(rows(each, day=writer))
    return ids


def _upsert(table: Table, writer: int, number: int) -> Sequence[int]:
    """Replaces what it has added before."""
    ids = [id_of(writer, each) for each in range(number + 1)]
    table.upsert(rows(*ids, day=writer), ["id"])
    return ids


def _compact(table: Table, writer: int, number: int) -> Sequence[int]:
    # Its snapshot may expire meanwhile.
    with suppress(CommitConflictError, MissingFileError):
        table.rewrite_data_files(options={"rewrite-all": "true"})
        table.rewrite_manifests()
    return ()


def _expire(table: Table, writer: int, number: int) -> Sequence[int]:
    """Removes keys that no snapshot needs."""
    table.expire_snapshots(older_than=table.metadata.last_updated_ms + 1, retain_last=4)
    time.sleep(0.05)
    return ()


_ACTS: list[_Act] = [_append, _append, _append, _transact, _transact, _upsert, _compact, _expire]


def _write(catalog: Mapping[str, str], act: _Act, writer: int, acknowledged: Path) -> None:
    with acknowledged.open("w") as file:
        for number in range(_COMMITS):
            ids = act(open_table(catalog), writer, number)
            file.write(f"{json.dumps(list(ids))}\n")
            file.flush()


def _told(acknowledged: Path) -> list[list[int]]:
    lines = acknowledged.read_text().splitlines() if acknowledged.exists() else []
    return [json.loads(line) for line in lines]


@pytest.fixture(params=["filesystem", "sqlite"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """A catalog of each kind, whose master key is in a file."""
    keys = tmp_path / "keys.json"
    keys.touch(mode=0o600)
    keys.write_text(json.dumps({"k": base64.b64encode(bytes(range(32))).decode()}))
    uri = f"sqlite:///{tmp_path}/catalog.db" if request.param == "sqlite" else None
    service = {"encryption.kms-type": "keystore", "kms.client.keystore.path": str(keys)}
    return {**catalog_in(tmp_path, uri), **service}


def test_no_key_and_no_row_is_lost_if_writers_race_and_are_killed(
    catalog: dict[str, str], tmp_path: Path, rng: random.Random
) -> None:
    # No key encryption key is there: all writers begin by making one.
    create_table(catalog, partition_by="day", version=3, encryption__key_id="k", **PATIENT)
    told = [tmp_path / f"acknowledged{writer}" for writer in range(len(_ACTS))]
    writers = [
        CONTEXT.Process(target=_write, args=(catalog, act, writer, told[writer]))
        for writer, act in enumerate(_ACTS)
    ]
    killed = set(rng.sample(range(len(writers)), len(writers) // 2))
    for process in writers:
        process.start()
    for writer in killed:
        # Whatever it is about to do; it may have ended.
        last = rng.randrange(_COMMITS)
        while len(_told(told[writer])) < last and writers[writer].is_alive():
            time.sleep(0.01)
        time.sleep(rng.random() / 10)
        with suppress(ProcessLookupError):
            os.kill(writers[writer].pid or 0, signal.SIGKILL)
    for process in writers:
        process.join()
    ended = [process.exitcode for writer, process in enumerate(writers) if writer not in killed]
    assert set(ended) == {0}

    table = open_table(catalog)
    found = table.scan().to_arrow()["id"].to_pylist()
    acknowledged = {id for file in told for ids in _told(file) for id in ids}
    assert acknowledged <= set(found)
    assert len(found) == len(set(found))
    for snapshot in table.snapshots():
        read = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["id"].to_pylist()
        assert len(read) == len(set(read))
    keys = {key.key_id: key for key in table.metadata.encryption_keys}
    lists = [keys[snapshot.key_id or ""] for snapshot in table.snapshots()]
    assert {key.encrypted_by_id for key in lists} <= keys.keys()
    # Expiry removes those of lists that were not committed, or are no more; not what wraps them.
    table.expire_snapshots(older_than=table.metadata.last_updated_ms + 1, retain_last=1)
    named = {snapshot.key_id for snapshot in table.snapshots()}
    of_lists = {k.key_id for k in table.metadata.encryption_keys if k.encrypted_by_id != "k"}
    assert of_lists == named
