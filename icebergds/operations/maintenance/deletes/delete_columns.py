"""Holds the live delete files of a snapshot as columns, and data files' sequence numbers."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.manifests.columns import EntryColumns, Int64s
from icebergds.formats.manifests.partitions import partition_tuples
from icebergds.scan.plan.delete_ranges import Mask
from icebergds.spec.manifest import FileContent, PartitionKey, partition_key
from icebergds.spec.reserved import DELETE_FILE_PATH

UNKNOWN_PATH = -1
GLOBAL = 0
"""The scope of equality deletes that apply to files of all partitions."""

STATS_IDS = frozenset({DELETE_FILE_PATH.field_id})
"""The columns whose metrics `delete_columns` needs."""

_NEVER = np.iinfo(np.int64).max
"""The lowest sequence number if there are no files."""
_PATHS_AT_A_TIME = 200_000


class Scopes:
    """Numbers partitions, from 1 on."""

    def __init__(self) -> None:
        self._known: dict[PartitionKey, int] = {}

    def __len__(self) -> int:
        """One more than the highest number."""
        return len(self._known) + 1

    def of(self, columns: EntryColumns) -> Int64s:
        """The number of the partition of each entry."""
        codes = np.zeros(len(columns), np.int64)
        for column in columns.partition:
            _, codes = np.unique(codes * (len(column) + 1) + _codes(column), return_inverse=True)
        _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
        distinct = [column.take(pa.array(firsts)) for column in columns.partition]
        tuples = partition_tuples(columns.partition_type, distinct, len(firsts))
        keys = [partition_key(columns.spec_id, values) for values in tuples]
        numbers = [self._known.setdefault(key, len(self)) for key in keys]
        scopes: Int64s = np.array(numbers, np.int64)[inverse]
        return scopes


@dataclass(frozen=True, slots=True)
class DeleteColumns:
    """Delete files, one value per file.

    Attributes:
        bounds: where the files of each manifest begin, and where those of the last one end.
        number: data sequence numbers.
        scope: the number of the partition, or `GLOBAL`.
        path: the only data file that a file of position deletes references, as an index in
            `paths`; `UNKNOWN_PATH` if that is not known.
        paths: distinct.
    """

    bounds: Int64s
    is_equality: Mask
    is_vector: Mask
    number: Int64s
    scope: Int64s
    path: Int64s
    paths: pa.StringArray

    def __len__(self) -> int:
        return len(self.number)


def delete_columns(
    manifests: Iterable[EntryColumns], scopes: Scopes, global_specs: frozenset[int]
) -> DeleteColumns:
    """The entries of delete manifests, in order.

    Args:
        manifests: at least one, read with the metrics of `STATS_IDS`.
        global_specs: ids of the specs without partition fields.
    """
    parts: list[tuple[Mask, Mask, Int64s, Int64s]] = []
    only_paths: list[pa.StringArray] = []
    for columns in manifests:
        is_equality = columns.content == FileContent.EQUALITY_DELETES.value
        is_global = is_equality & (columns.spec_id in global_specs)
        scope = np.where(is_global, GLOBAL, scopes.of(columns))
        parts.append((is_equality, _is_vector(columns), columns.data_sequence_number, scope))
        only_paths.append(pc.if_else(pa.array(is_equality), None, _only_path(columns)))
    equality, vectors, numbers, found = zip(*parts, strict=True)
    encoded = pa.concat_arrays(only_paths).dictionary_encode()
    return DeleteColumns(
        np.cumsum([0, *map(len, numbers)]),
        np.concatenate(equality),
        np.concatenate(vectors),
        np.concatenate(numbers),
        np.concatenate(found),
        encoded.indices.cast(pa.int64()).fill_null(UNKNOWN_PATH).to_numpy(zero_copy_only=False),
        encoded.dictionary,
    )


class DataNumbers:
    """The lowest data sequence numbers of the data files at paths and in partitions of deletes.

    Attributes:
        has_vector: for each data file, in the order of `add`, whether a deletion vector applies to
            it, which replaces all position deletes.
    """

    def __init__(self, deletes: DeleteColumns, scopes: Scopes) -> None:
        self._deletes = deletes
        # Data files of other partitions matter to global deletes only.
        self._scopes = len(scopes)
        self._vectors = np.full(len(deletes.paths), -1)
        named = deletes.is_vector & (deletes.path != UNKNOWN_PATH)
        np.maximum.at(self._vectors, deletes.path[named], deletes.number[named])
        self._by_path, self._plain_by_path = np.full((2, len(deletes.paths)), _NEVER)
        self._by_scope, self._plain_by_scope = np.full((2, self._scopes), _NEVER)
        self._waiting: list[tuple[pa.StringArray, Int64s, Int64s]] = []
        self._has_vector: list[Mask] = []

    def add(self, columns: EntryColumns, scopes: Int64s) -> None:
        """Adds live data files and their partitions."""
        self._waiting.append((columns.file_path, columns.data_sequence_number, scopes))
        if sum(len(numbers) for _, numbers, _ in self._waiting) >= _PATHS_AT_A_TIME:
            self._add_waiting()

    def has_vector(self) -> Mask:
        self._add_waiting()
        return np.concatenate([np.zeros(0, np.bool_), *self._has_vector])

    def decide(self) -> tuple[Mask, Mask]:
        """Which deletes apply to some data file, and which only their bounds can decide."""
        self._add_waiting()
        deletes = self._deletes
        of_path = deletes.path != UNKNOWN_PATH
        applies = np.zeros(len(deletes), np.bool_)
        # A vector that names no file is damaged, which must not be hidden here.
        applies[deletes.is_vector & ~of_path] = True
        for chosen, least in (
            (deletes.is_vector & of_path, self._by_path),
            (~deletes.is_vector & of_path, self._plain_by_path),
        ):
            applies[chosen] = least[deletes.path[chosen]] <= deletes.number[chosen]
        may_apply = np.zeros(len(deletes), np.bool_)
        # Position deletes also apply to rows of their own commit.
        positions = ~deletes.is_equality & ~deletes.is_vector & ~of_path
        least = self._plain_by_scope[deletes.scope[positions]]
        may_apply[positions] = least <= deletes.number[positions]
        equality = deletes.is_equality
        may_apply[equality] = self._by_scope[deletes.scope[equality]] < deletes.number[equality]
        return applies, may_apply

    def _add_waiting(self) -> None:
        if not self._waiting:
            return
        paths, numbers, scopes = zip(*self._waiting, strict=True)
        self._waiting = []
        number, scope = np.concatenate(numbers), np.concatenate(scopes)
        found = pc.index_in(pa.concat_arrays(paths), value_set=self._deletes.paths)
        at = found.cast(pa.int64()).fill_null(UNKNOWN_PATH).to_numpy(zero_copy_only=False)
        named = at != UNKNOWN_PATH
        np.minimum.at(self._by_path, at[named], number[named])
        has_vector = np.zeros(len(at), np.bool_)
        has_vector[named] = self._vectors[at[named]] >= number[named]
        plain = named & ~has_vector
        np.minimum.at(self._plain_by_path, at[plain], number[plain])
        known = scope < self._scopes
        np.minimum.at(self._by_scope, scope[known], number[known])
        plain = known & ~has_vector
        np.minimum.at(self._plain_by_scope, scope[plain], number[plain])
        self._by_scope[GLOBAL] = min(self._by_scope[GLOBAL], number.min(initial=_NEVER))
        self._has_vector.append(has_vector)


def _codes(column: pa.Array) -> Int64s:
    """Numbers of at least 0, equal for equal values only."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64)
    if pa.types.is_floating(column.type):
        # By their bits: -0.0 and 0.0 are different partitions.
        column = column.view(pa.int32() if column.type == pa.float32() else pa.int64())
    encoded = column.dictionary_encode(null_encoding="encode")
    codes: Int64s = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _is_vector(columns: EntryColumns) -> Mask:
    mask: Mask = columns.content == FileContent.POSITION_DELETES.value
    mask &= columns.is_vector
    return mask


def _only_path(columns: EntryColumns) -> pa.StringArray:
    """The only data file of position deletes, as `only_data_path` finds it; null if unknown."""
    bounds = columns.stats[DELETE_FILE_PATH.field_id]
    are_equal = pc.equal(bounds.lower_bound, bounds.upper_bound)
    bound = pc.if_else(are_equal, bounds.lower_bound, None)
    try:
        path = bound.cast(pa.string())
    except pa.ArrowInvalid:
        path = pa.array([_text(value) for value in bound.to_pylist()], pa.string())
    # A vector is for the file that it names, whatever its bounds.
    path = pc.if_else(pa.array(_is_vector(columns)), None, path)
    return pc.coalesce(columns.referenced_data_file, path)


def _text(bound: bytes | None) -> str | None:
    with suppress(UnicodeDecodeError):
        return None if bound is None else bound.decode()
    return None
