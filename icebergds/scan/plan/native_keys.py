"""Decides which equality deletes Spark can apply, by joining rows with the deleted keys.

The join is by value, and null equals null, as in the specification. Floating-point numbers are
left to icebergds: for Spark, zeros of both signs are equal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.plan.native_columns import is_native_column
from icebergds.scan.plan.native_forms import is_plain_path
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.manifest import DataFile, FileFormat, ManifestEntry, PartitionKey, partition_of
from icebergds.spec.schema import Schema
from icebergds.spec.types import BINARY, DOUBLE, FLOAT, STRING, NestedField

KeyScope: TypeAlias = tuple[int, PartitionKey | None]
"""Which equality deletes apply to a file: how many of their sequence numbers are too old, and its
partition, if any of them belongs to a partition."""

# The most that Spark sends to all executors.
_MOST_FILES = 256
_MOST_BYTES = 16 << 20
_MOST_KEYS = 1 << 20
# Each may take some hundred bytes.
_MOST_TEXTS = 1 << 18


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The key columns by which Spark can apply equality deletes.

    Attributes:
        fields: the key columns by id.
        added: key columns that the scan does not read.
    """

    fields: Mapping[int, NestedField]
    added: tuple[NestedField, ...]
    _resolve: Callable[[str], str]

    @staticmethod
    def of(plan: ReadPlan, files: Iterable[PlannedFile], history: Sequence[Schema]) -> KeyColumns:
        """The key columns of the equality deletes of a scan.

        Args:
            history: all schemas, newest first.
        """
        ids = {i for entry in entries_of(files) for i in entry.data_file.equality_ids}
        if not ids or plan.name_mapping is not None:
            return NO_KEYS
        read = {column.field_id for column in plan.columns.fields}
        taken = {column.name.lower() for column in plan.columns.fields}
        if len(taken) < len(read):
            # Spark may take two names for the same.
            return NO_KEYS
        fields: dict[int, NestedField] = {}
        added: list[NestedField] = []
        for field_id in sorted(ids):
            field = _top_level((plan.table_schema, *history), field_id)
            if field is None or field.field_type in (FLOAT, DOUBLE) or not is_native_column(field):
                continue
            if field_id not in read:
                # A dropped column whose name another column has now.
                if field.name.lower() in taken:
                    continue
                taken.add(field.name.lower())
                added.append(field)
            fields[field_id] = field
        return KeyColumns(fields, tuple(added), plan.io.resolve)

    def can_apply_to(self, file: PlannedFile) -> bool:
        """Whether Spark can apply all equality deletes of a file."""
        return all(self._is_readable(entry.data_file) for entry in file.deletes.equality_deletes)

    def have_many(self, files: Iterable[PlannedFile]) -> bool:
        """Whether equality deletes are too many to be sent to all executors."""
        deletes = deletes_of(files)
        return (
            len(deletes) > _MOST_FILES
            or sum(delete.file_size_in_bytes for delete in deletes) > _MOST_BYTES
            or sum(delete.record_count for delete in deletes) > self._most_keys(deletes)
        )

    def _most_keys(self, deletes: Iterable[DataFile]) -> int:
        ids = {i for delete in deletes for i in delete.equality_ids if i in self.fields}
        has_texts = any(self.fields[i].field_type in (STRING, BINARY) for i in ids)
        return _MOST_TEXTS if has_texts else _MOST_KEYS

    def _is_readable(self, delete: DataFile) -> bool:
        return (
            self.fields.keys() >= set(delete.equality_ids)
            and delete.file_format is FileFormat.PARQUET
            and delete.key_metadata is None
            and is_plain_path(self._resolve(delete.file_path))
        )


NO_KEYS = KeyColumns({}, (), str)
"""Spark applies no equality deletes."""


class KeyScopes:
    """Finds the files of a scan to which the same equality deletes apply."""

    def __init__(self, files: Iterable[PlannedFile]) -> None:
        self._numbers = sorted({entry.data_sequence_number for entry in entries_of(files)})

    def of(self, file: PlannedFile, *, is_global: Callable[[DataFile], bool]) -> KeyScope | None:
        """The scope of a file; None if no equality deletes apply to it.

        A delete that metrics rule out for one file of a scope deletes nothing in it anyway.
        """
        deletes = file.deletes.equality_deletes
        if not deletes:
            return None
        older = bisect_right(self._numbers, file.entry.data_sequence_number)
        if all(is_global(entry.data_file) for entry in deletes):
            return older, None
        return older, partition_of(file.entry.data_file)


def deletes_of(files: Iterable[PlannedFile]) -> list[DataFile]:
    """All equality deletes of files, each once."""
    found = {entry.data_file.file_path: entry.data_file for entry in entries_of(files)}
    return list(found.values())


def entries_of(files: Iterable[PlannedFile]) -> Iterable[ManifestEntry]:
    """All equality deletes of files, each once per data sequence number."""
    # Many files share one tuple of deletes.
    tuples = {id(found): found for found in (file.deletes.equality_deletes for file in files)}
    found = (entry for deletes in tuples.values() for entry in deletes)
    return {
        (entry.data_file.file_path, entry.data_sequence_number): entry for entry in found
    }.values()


def _top_level(schemas: Iterable[Schema], field_id: int) -> NestedField | None:
    """A column from the first schema that has it; None if it is in a struct."""
    for schema in schemas:
        field = schema.find_field(field_id)
        if field is not None:
            is_nested = schema.parents_by_id.get(field_id) is not None
            return None if is_nested else replace(field, required=False)
    return None
