"""Random histories of few distinct rows, so that the same row is deleted and inserted often."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from built.tables import TableBuilder
from effort import examples
from hypothesis import HealthCheck, given, strategies as st

from icebergds.api.table import Table, load_table
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import INT, STRING, NestedField

_SCHEMA = Schema(
    (NestedField(1, "id", INT), NestedField(2, "day", INT), NestedField(3, "n", STRING))
)
_BY_DAY = PartitionSpec(1, (PartitionField((2,), 1000, IdentityTransform(), "day"),))
_Row = tuple[Any, ...]
_ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from(["a", "b", None])),
    min_size=1,
    max_size=4,
)
_SETTINGS = examples(40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


class _History:
    """A table that random commits change; files keep their rows, which deletes may hide."""

    def __init__(self, draw: Callable[[Any], Any], location: Path) -> None:
        self._draw = draw
        self._version = draw(st.sampled_from([2, 3]))
        self._is_partitioned = draw(st.booleans())
        spec = _BY_DAY if self._is_partitioned else PartitionSpec()
        self.builder = TableBuilder(location, _SCHEMA, spec=spec, format_version=self._version)
        self._files: dict[str, tuple[DataFile, list[_Row], set[int]]] = {}
        self._deletes: list[DataFile] = []
        self._vectors: dict[str, set[int]] = {}

    def step(self) -> None:
        steps = [self._append]
        if self._files:
            steps += [self._upsert, self._upsert, self._delete_keys, self._delete_rows]
            steps += [self._rewrite, self._rewrite, self._replace, self._remove]
        self._draw(st.sampled_from(steps))()

    def _append(self) -> None:
        self.builder.commit(*self._new_files(self._draw(_ROWS)))

    def _upsert(self) -> None:
        """By equality deletes, often of rows that come again as they were."""
        rows = self._draw(_ROWS)
        deletes = self._by_key({row[0] for row in rows})
        self.builder.commit(*self._new_files(rows), *deletes, operation="overwrite")

    def _delete_keys(self) -> None:
        deletes = self._by_key({row[0] for row in self._draw(_ROWS)})
        self.builder.commit(*deletes, operation="delete")

    def _delete_rows(self) -> None:
        """By position deletes or a deletion vector, also of rows that are deleted already."""
        file, rows, gone = self._some_file()
        positions = self._draw(st.sets(st.integers(0, len(rows) - 1), min_size=1))
        removed = []
        if self._version == 3:
            removed = [d for d in self._deletes if d.referenced_data_file == file.file_path]
            positions = positions | self._vectors.get(file.file_path, set())
            self._vectors[file.file_path] = positions
            new = self.builder.deletion_vectors([(file, sorted(positions))])
        else:
            new = [
                self.builder.position_deletes(
                    {file.file_path: sorted(positions)}, partition=file.partition
                )
            ]
        gone |= positions
        self._deletes = [d for d in self._deletes if d not in removed] + new
        self.builder.commit(*new, removed=removed, operation="delete")

    def _rewrite(self) -> None:
        """Copy-on-write: a file's live rows, some of them changed, in a new file."""
        file, rows, gone = self._some_file()
        kept = [row for row in _without(rows, gone) if self._draw(st.integers(0, 3))]
        more = self._draw(st.just([]) | _ROWS)
        removed = self._take([file.file_path])
        self.builder.commit(*self._new_files(kept + more), removed=removed, operation="overwrite")

    def _replace(self) -> None:
        rows = [r for _, rows, gone in self._files.values() for r in _without(rows, gone)]
        removed = self._take(list(self._files))
        self.builder.commit(*self._new_files(rows), removed=removed, operation="replace")

    def _remove(self) -> None:
        file, _, _ = self._some_file()
        self.builder.commit(removed=self._take([file.file_path]), operation="delete")

    def _some_file(self) -> tuple[DataFile, list[_Row], set[int]]:
        return list(self._files.values())[self._draw(st.integers(0, len(self._files) - 1))]

    def _new_files(self, rows: Sequence[_Row]) -> list[DataFile]:
        made: list[DataFile] = []
        for day in sorted({row[1] for row in rows}) if self._is_partitioned else [None]:
            own = [row for row in rows if day is None or row[1] == day]
            if own:
                partition = () if day is None else (day,)
                file = self.builder.data_file(own, partition=partition)
                self._files[file.file_path] = (file, own, set())
                made.append(file)
        return made

    def _by_key(self, ids: set[int]) -> list[DataFile]:
        keys = [(i,) for i in sorted(ids)]
        days = [(0,), (1,)] if self._is_partitioned else [()]
        made = [self.builder.equality_deletes(["id"], keys, partition=day) for day in days]
        for _, rows, gone in self._files.values():
            gone.update(at for at, row in enumerate(rows) if row[0] in ids)
        self._deletes += made
        return made

    def _take(self, paths: Sequence[str]) -> list[DataFile]:
        vectors = [d for d in self._deletes if d.referenced_data_file in paths]
        self._deletes = [d for d in self._deletes if d not in vectors]
        return [*(self._files.pop(path)[0] for path in paths), *vectors]


@given(st.data())
@_SETTINGS
def test_a_feed_that_is_replayed_gives_the_rows_of_each_snapshot(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = _table(data, Path(directory))
        feed = table.changes().to_arrow().to_pylist()
        state: Counter[_Row] = Counter()
        for snapshot in table.snapshots():
            steps = [row for row in feed if row["_commit_snapshot_id"] == snapshot.snapshot_id]
            inserted = Counter(_row(r) for r in steps if r["_change_type"] == "INSERT")
            deleted = Counter(_row(r) for r in steps if r["_change_type"] == "DELETE")
            assert not inserted & deleted
            assert deleted <= state
            state = state - deleted + inserted
            assert state == _rows(table, snapshot.snapshot_id)


@given(st.data())
@_SETTINGS
def test_net_changes_lead_from_the_first_snapshot_to_the_last(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = _table(data, Path(directory))
        ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
        start = data.draw(st.sampled_from([None, *ids]))
        before = Counter() if start is None else _rows(table, start)
        after = _rows(table, ids[-1])
        net = table.changes(start, net_changes=True).to_arrow().to_pylist()
        assert Counter((_row(r), r["_change_type"]) for r in net) == Counter(
            {(row, "INSERT"): n for row, n in (after - before).items()}
        ) + Counter({(row, "DELETE"): n for row, n in (before - after).items()})


def _table(data: st.DataObject, directory: Path) -> Table:
    made = _History(data.draw, directory / "t")
    for _ in range(data.draw(st.integers(2, 7))):
        made.step()
    return load_table(str(made.builder.location))


def _row(row: dict[str, Any]) -> _Row:
    return (row["id"], row["day"], row["n"])


def _rows(table: Table, snapshot_id: int) -> Counter[_Row]:
    return Counter(map(_row, table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()))


def _without(rows: Sequence[_Row], gone: set[int]) -> list[_Row]:
    return [row for at, row in enumerate(rows) if at not in gone]
