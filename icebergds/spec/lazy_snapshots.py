"""Holds the snapshots of a table whose catalog sent only those that branches and tags refer to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

from icebergds.spec.read_only import ReadOnlyDict
from icebergds.spec.snapshot import Snapshot


class LazySnapshots(Sequence[Snapshot]):
    """All snapshots of a table, which are loaded when more than the known ones are needed.

    Threads may share it. A pickle has all of them.

    Args:
        known: those that branches and tags refer to.
        load: gets all.
    """

    def __init__(self, known: Sequence[Snapshot], load: Callable[[], tuple[Snapshot, ...]]) -> None:
        self.known = tuple(known)
        self.by_id = LazySnapshotsById(self)
        self._load = load
        self._all: tuple[Snapshot, ...] | None = None
        self._lock = threading.Lock()

    def all(self) -> tuple[Snapshot, ...]:
        """All snapshots, loaded once.

        Raises what loading does.
        """
        with self._lock:
            if self._all is None:
                self._all = self._load()
            return self._all

    def known_count(self) -> str:
        """How many there are, for messages; if they are not loaded, how many are known."""
        if self._all is None:
            return f"{len(self.known):,} of branches and tags"
        return f"{len(self._all):,}"

    def __len__(self) -> int:
        return len(self.all())

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(self.all())

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Snapshot, ...]: ...

    def __getitem__(self, index: int | slice) -> Snapshot | tuple[Snapshot, ...]:
        return self.all()[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (LazySnapshots, tuple)):
            return NotImplemented
        return self is other or self.all() == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"LazySnapshots({self._all or self.known!r})"

    def __reduce__(self) -> tuple[type, tuple[tuple[Snapshot, ...]]]:
        return tuple, (self.all(),)


class LazySnapshotsById(Mapping[int, Snapshot]):
    """Snapshots by their ids; one that is known is found without loading the others."""

    def __init__(self, snapshots: LazySnapshots) -> None:
        self._snapshots = snapshots
        self._known = _by_id(snapshots.known)
        self._all: Mapping[int, Snapshot] | None = None

    def __getitem__(self, snapshot_id: int) -> Snapshot:
        found = self._known.get(snapshot_id)
        return self._whole()[snapshot_id] if found is None else found

    def __len__(self) -> int:
        return len(self._whole())

    def __iter__(self) -> Iterator[int]:
        return iter(self._whole())

    def _whole(self) -> Mapping[int, Snapshot]:
        if self._all is None:
            self._all = _by_id(self._snapshots.all())
        return self._all


def _by_id(snapshots: Sequence[Snapshot]) -> Mapping[int, Snapshot]:
    return ReadOnlyDict({snapshot.snapshot_id: snapshot for snapshot in snapshots})
