"""Finds the rows of data files that equality deletes delete; reads only key columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.deletes.key_columns import encode_column
from icebergds.formats.deletes.key_hash import Hashes, hash_columns
from icebergds.formats.deletes.positions import PositionCollector, Positions, PositionSet
from icebergds.scan.read.deletes import load_positions
from icebergds.scan.read.key_positions import positions_of_keys
from icebergds.scan.read.task_keys import KeyLoader, TaskKeys
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import FileScanTask, ScanTaskGroup

_POSITIONS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class DeletedByKey:
    """The rows of a data file that its equality deletes delete.

    Attributes:
        task: the scan of the whole file.
        positions: of these rows, without those that position deletes delete.
        deleted_before: the positions that the task's position deletes delete; None if none.
        keys: hashes of the keys of these rows; None if they were not asked for, or the keys to find
            did not fit in memory at once.
        row_ids: the ids of these rows, in the order of `keys`; None as for these, -1 for a row
            without one.
    """

    task: FileScanTask
    positions: PositionSet
    deleted_before: PositionSet | None
    keys: Hashes | None = None
    row_ids: Positions | None = None


@dataclass(frozen=True, slots=True)
class KeyHashing:
    """Which hashes of keys to return.

    Attributes:
        key_ids: the key columns, in the order in which they are hashed.
        seed: equal for hashes that are compared.
        with_row_ids: whether to return the ids of rows, too.
    """

    key_ids: tuple[int, ...]
    seed: int
    with_row_ids: bool = False


def read_deleted_by_key(
    plan: ReadPlan,
    task_group: ScanTaskGroup,
    hashing: KeyHashing | None = None,
    row_filter: Expr = TRUE,
) -> Iterator[DeletedByKey]:
    """Finds the rows that equality deletes delete, one file after the other.

    The columns and the filter of the plan are not used.

    Args:
        task_group: tasks of whole files.
        hashing: which hashes of keys to return.
        row_filter: bound to the table's schema; selects at least the rows that are deleted.

    Raises:
        CorruptFileError: a data or delete file is damaged.
        MissingFileError: a data or delete file does not exist.
        UnsupportedFeatureError: a file uses an unsupported feature; the message names it.
    """
    loader = KeyLoader(plan, task_group)
    for number, task in enumerate(task_group.tasks):
        before = load_positions(plan, task_group, task, task.position_deletes)
        keys = loader.keys_of(number)
        if hashing is None or keys.positions:
            found = _deleted(plan, task_group, task, keys, before, None, row_filter)
            yield DeletedByKey(task, found, before)
            continue
        hashed = _HashedKeys(task_group, hashing, before)
        found = _deleted(plan, task_group, task, keys, before, hashed, row_filter)
        yield DeletedByKey(task, found, before, hashed.keys(), hashed.row_ids())


class _HashedKeys:
    """Hashes the keys of the rows that are found, without those that were deleted before."""

    def __init__(
        self, task_group: ScanTaskGroup, hashing: KeyHashing, before: PositionSet | None
    ) -> None:
        # The deletes of one change have the same key columns.
        ids = task_group.equality_deletes[0].equality_ids if task_group.equality_deletes else ()
        self._order = [ids.index(field_id) for field_id in hashing.key_ids if ids]
        fields = (task_group.key_schema.find_field(field_id) for field_id in hashing.key_ids)
        self._fields = [field for field in fields if field is not None]
        self._hashing, self._before = hashing, before
        self._found: list[Hashes] = [np.empty(0, np.uint64)]
        self._row_ids: list[Positions] = [np.empty(0, np.int64)]

    @property
    def with_row_ids(self) -> bool:
        return self._hashing.with_row_ids

    def add(self, positions: Positions, columns: list[pa.Array]) -> None:
        if self._before is not None:
            is_new = pa.array(~self._before.contains(positions))
            columns = [column.filter(is_new) for column in columns]
        keys = [columns[at] for at in self._order]
        encoded = [encode_column(c, f) for c, f in zip(keys, self._fields, strict=True)]
        self._found.append(hash_columns(encoded, len(columns[0]), self._hashing.seed))
        if self.with_row_ids:
            self._row_ids.append(columns[-1].fill_null(-1).to_numpy(zero_copy_only=False))

    def keys(self) -> Hashes:
        return np.concatenate(self._found)

    def row_ids(self) -> Positions | None:
        return np.concatenate(self._row_ids) if self.with_row_ids else None


def _deleted(
    plan: ReadPlan,
    task_group: ScanTaskGroup,
    task: FileScanTask,
    keys: TaskKeys,
    before: PositionSet | None,
    hashed: _HashedKeys | None,
    row_filter: Expr,
) -> PositionSet:
    found, seen = PositionCollector(), None if hashed is None else hashed.add
    with_row_ids = hashed is not None and hashed.with_row_ids

    def add(positions: Positions) -> None:
        new = positions if before is None else positions[~before.contains(positions)]
        if len(new):
            found.add(new)

    if keys.sets:
        for positions in positions_of_keys(
            plan, task_group, task, keys.sets, seen, with_row_ids, row_filter
        ):
            add(positions)
    for of_group in keys.positions.values():
        for positions in of_group.parts(_POSITIONS_AT_ONCE):
            add(positions)
    return found.result()
