"""What a table that a stream upserts into must have after each batch, and who uses its snapshots.

Each batch upserts some of the keys and writes its own number to them, so a row that is lost,
doubled, old or mixed of two shows in the batch numbers. Rows are the same for every snapshot of a
batch, those of maintenance included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Lock

import numpy as np
import pyarrow as pa

from icebergds import Table, load_table
from icebergds.spec.snapshot import Snapshot

KEYS = 1_000
ROWS = 100
CHANGES = ["id", "batch", "name", "_change_type"]
EPOCH_ID = "spark.sql.streaming.epochId"


class Batches:
    """Which keys each batch upserts, and the batch that wrote each key's row at last."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._states = [np.full(KEYS, -1)]
        self._lock = Lock()

    def keys(self, batch: int) -> np.ndarray:
        """The keys of a batch, ascending; about half of them were in one of the last batches."""
        rng = np.random.default_rng([self._seed, batch])
        near = (batch * ROWS // 3 + np.arange(2 * ROWS)) % KEYS
        keys = np.concatenate([rng.permutation(near)[: ROWS // 2], rng.permutation(KEYS)[:ROWS]])
        return np.unique(keys)

    def rows(self, batch: int) -> pa.Table:
        """The rows of the table after a batch, by key; none before the first, which is 0."""
        state = self._state(batch)
        keys = np.flatnonzero(state >= 0)
        return _rows(keys, state[keys])

    def upserted(self, batch: int) -> pa.Table:
        """The rows that a batch upserts."""
        keys = self.keys(batch)
        return _rows(keys, np.full(len(keys), batch))

    def changes(self, batch: int) -> pa.Table:
        """The rows that a batch deletes and inserts, by key and kind."""
        keys = self.keys(batch)
        old = self._state(batch - 1)[keys]
        known = old >= 0
        deleted = _rows(keys[known], old[known])
        inserted = self.upserted(batch)
        kinds = ["DELETE"] * len(deleted) + ["INSERT"] * len(inserted)
        found = pa.concat_tables([deleted, inserted]).append_column("_change_type", [kinds])
        return found.sort_by([("id", "ascending"), ("_change_type", "ascending")])

    def _state(self, batch: int) -> np.ndarray:
        with self._lock:
            while len(self._states) <= batch + 1:
                state = self._states[-1].copy()
                number = len(self._states) - 1
                state[self.keys(number)] = number
                self._states.append(state)
            return self._states[batch + 1]


def _rows(keys: np.ndarray, batches: np.ndarray) -> pa.Table:
    names = [f"{key} of {batch}" for key, batch in zip(keys, batches, strict=True)]
    columns = {"id": pa.array(keys, pa.int64()), "batch": pa.array(batches, pa.int64())}
    return pa.table({**columns, "name": pa.array(names, pa.string())})


class Snapshots:
    """The snapshots of a table: which batch each is the state after, and which ones are in use.

    Whoever reads says what from, and no snapshot expires that is as young. This is what the age of
    snapshots, days in real tables, is for.

    Attributes:
        batches: the batch of each snapshot, also of expired ones.
        numbers: the sequence number of each batch's commit.
        followed: the newest snapshot of which the follower has read all changes.
    """

    def __init__(self, location: Path) -> None:
        self.batches: dict[int, int] = {}
        self.numbers: dict[int, int] = {}
        self.expired = 0
        self._times: dict[int, int] = {}
        self._location = location
        self._lock = Lock()
        self._followed_ms = 0
        self._used_ms: dict[int, int] = {}
        self._bound_ms = 0

    @property
    def newest_batch(self) -> int:
        """The newest batch that was seen; -1 before the first."""
        return max(self.numbers, default=-1)

    def load(self) -> Table:
        """The table as it is now; notes its new snapshots."""
        with self._lock:
            return self._load()

    def follow(self, snapshot_id: int) -> None:
        """Notes that the changes up to a snapshot were read."""
        with self._lock:
            self._followed_ms = self._times[snapshot_id]

    @contextmanager
    def using(self, rng: Random | None = None) -> Iterator[tuple[Table, Snapshot]]:
        """The table and its head, or one of its other snapshots, none of which expires meanwhile.

        Args:
            rng: chooses a snapshot; None takes the head.
        """
        with self._lock:
            table = self._load()
            known = [s for s in table.snapshots() if s.timestamp_ms >= self._bound_ms]
            snapshot = rng.choice(known) if rng else table.current_snapshot()
            assert snapshot is not None
            key = max(self._used_ms, default=0) + 1
            self._used_ms[key] = snapshot.timestamp_ms
        try:
            yield table, snapshot
        finally:
            with self._lock:
                del self._used_ms[key]

    def expire(self) -> None:
        """Expires all snapshots that are older than those in use, except the last three."""
        with self._lock:
            table = self._load()
            head = table.current_snapshot()
            assert head is not None
            used = [self._followed_ms, head.timestamp_ms, *self._used_ms.values()]
            self._bound_ms = min(used)
        done = table.expire_snapshots(older_than=self._bound_ms, retain_last=3)
        assert done.failed_files_count == 0
        self.expired += len(done.expired_snapshot_ids)

    def _load(self) -> Table:
        table = load_table(self._location)
        for snapshot in table.snapshots():
            if snapshot.snapshot_id in self.batches:
                continue
            before = self.batches.get(snapshot.parent_snapshot_id or 0, -1)
            batch = int(snapshot.summary.get(EPOCH_ID, before))
            if EPOCH_ID in snapshot.summary:
                assert batch == before + 1, f"batch {batch} follows batch {before}"
                self.numbers[batch] = snapshot.sequence_number
            self.batches[snapshot.snapshot_id] = batch
            self._times[snapshot.snapshot_id] = snapshot.timestamp_ms
        return table
