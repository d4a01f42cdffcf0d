"""An expiry whose storage or database fails at any call leaves the table before it or after it.

Whatever fails, every snapshot that the table still lists reads as before.
"""

from __future__ import annotations

import random
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import Properties, catalog_in, create_table, open_table, rows
from effort import IS_NIGHTLY, given_seed

from icebergds.errors import CommitConflictError, IcebergError, StorageError
from icebergds.testing.faults import Fault, Faults, When
from icebergds.testing.faulty_system import DISK, faulty_system

_PATIENCE = {
    "commit.retry.num-retries": "2",
    "commit.retry.max-wait-ms": "2",
    "commit.status-check.max-wait-ms": "2",
}
_LEFT = "expired, but no file was deleted"


class _Place:
    """A catalog with a table of six snapshots, which is restored before each try."""

    def __init__(self, directory: Path, kind: str) -> None:
        self._now, self._before = directory / "now", directory / "before"
        self._now.mkdir()
        uri = f"sqlite:///{self._now}/c.db" if kind == "sqlite" else None
        self._properties: Properties = catalog_in(self._now, uri)
        table = create_table(self._properties, partition_by="day", **_PATIENCE)
        table.append(pa.concat_tables([rows(1, day=0), rows(2, 3, day=1)]))
        table.append(rows(4, day=2))
        table.delete("day = 1")
        table.append(rows(5, day=2), options={"wap.id": "staged"})
        table.delete_keys(rows(4), ["id"])
        table.overwrite(rows(6, day=0), "day = 0")
        self.rows = self.found()
        shutil.copytree(self._now, self._before)

    def restore(self) -> None:
        shutil.rmtree(self._now)
        shutil.copytree(self._before, self._now)

    def run(self, faults: Faults | None = None) -> Any:
        table = open_table(self._properties)
        cutoff = table.metadata.last_updated_ms + 1
        with faulty_system(faults or Faults(counted=())):
            return table.expire_snapshots(cutoff, retain_last=2)

    def found(self) -> dict[int, list[tuple[Any, ...]]]:
        """The rows of each snapshot."""
        table = open_table(self._properties)
        return {
            snapshot.snapshot_id: sorted(
                tuple(row.values())
                for row in table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
            )
            for snapshot in table.snapshots()
        }

    def files(self) -> set[Path]:
        return {path for path in self._now.rglob("*.parquet") if path.is_file()}


def _faults(calls: int) -> list[Fault]:
    """Each call fails once or from then on, before its effect or after it; some, unless nightly."""
    ways = product(range(calls), (When.BEFORE, When.AFTER), (False, True))
    faults = [Fault(call, when, DISK, lasting) for call, when, lasting in ways]
    return faults if IS_NIGHTLY else random.Random(given_seed() or 0).sample(faults, 8)


@pytest.mark.parametrize("kind", ["filesystem", "sqlite"])
def test_a_fault_leaves_before_or_after_and_is_told(tmp_path: Path, kind: str) -> None:
    place = _Place(tmp_path, kind)
    files = place.files()
    counting = Faults(counted=None)
    expired = place.run(counting)
    after, left = place.found(), place.files()
    assert len(after) == 2
    assert len(left) < len(files)
    for fault in _faults(len(counting.calls)):
        place.restore()
        named = f"{counting.calls[fault.call]}, {fault}"
        outcome: Exception | None = None
        result = None
        try:
            result = place.run(Faults([fault], counted=None))
        except Exception as error:
            outcome = error
        found = place.found()
        assert found == {snapshot_id: place.rows[snapshot_id] for snapshot_id in found}, named
        assert place.files() >= left, named
        if outcome is None:
            assert found == after, named
            assert result.expired_snapshot_ids == expired.expired_snapshot_ids, named
            assert result.failed_files_count or place.files() == left, named
            continue
        assert isinstance(outcome, IcebergError), named
        assert place.files() == files, named
        if outcome.outcome_unknown:
            assert found in (place.rows, after), named
        elif _LEFT in str(outcome):
            assert found == after, named
        else:
            assert isinstance(outcome, StorageError | CommitConflictError), named
            assert found == place.rows, f"{named}: {outcome}"
