"""Selects the data files that Spark's own Parquet reader may read.

Only files that it is certain to read correctly are selected; `scan.read.files` reads the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from icebergds.expr.nodes import TRUE, Expr
from icebergds.expr.residual import residual_evaluator
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.plan.native_columns import (
    NATIVE_PREFIX,
    LackedColumns,
    PartitionColumns,
    is_native_column,
)
from icebergds.scan.plan.native_forms import MOST_FOOTERS, FormRule, is_plain_path
from icebergds.scan.plan.native_keys import NO_KEYS, KeyColumns, entries_of
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.manifest import FileFormat, ManifestEntry
from icebergds.spec.reserved import FILE_PATH, POS
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField

# The most position deletes that planning reads.
_MOST_DELETES = 256
_MOST_DELETE_BYTES = 16 << 20
# A bit for each is sent to the executors.
_MOST_ROWS = 1 << 30
# The files of each partition have their own relation, which takes Spark time to plan.
_MOST_PARTITIONS = 8


@dataclass(frozen=True, slots=True)
class NativeRule:
    """Splits the files of a scan into those for Spark's reader and the others.

    Attributes:
        columns: what Spark reads: columns of the scan, then key columns of equality deletes.
        keys: the key columns of the equality deletes that Spark applies.
    """

    columns: Schema
    keys: KeyColumns
    _resolve: Callable[[str], str]
    _residuals: dict[int, Callable[[tuple[object, ...]], Expr]]
    _partitions: dict[int, PartitionColumns]
    _leaves_deletes: bool
    _needs_footers: bool
    _forms: FormRule

    def split(self, files: Sequence[PlannedFile]) -> tuple[list[PlannedFile], list[PlannedFile]]:
        """The files for Spark's reader, and the others."""
        native: list[PlannedFile] = []
        others: list[PlannedFile] = []
        for file, obstacle in zip(files, self.obstacles(files), strict=True):
            (native if obstacle is None else others).append(file)
        return native, others

    def obstacles(self, files: Sequence[PlannedFile]) -> list[str | None]:
        """Why Spark's reader may not read each file; None if it may.

        Reads footers of files that icebergds did not write.
        """
        found = list(self._obstacles_in_metadata(files))
        possible = [at for at, why in enumerate(found) if why is None]
        unreadable = self._unreadable_deletes([files[at] for at in possible])
        entries = [files[at].entry for at in possible]
        of_forms = self._forms.obstacles(entries, self.columns.fields)
        for at, why in zip(possible, of_forms, strict=True):
            deletes = files[at].deletes.equality_deletes
            if (
                why is None
                and unreadable
                and any(entry.data_file.file_path in unreadable for entry in deletes)
            ):
                why = "equality deletes"
            found[at] = why
        return found

    def _unreadable_deletes(self, files: Sequence[PlannedFile]) -> set[str]:
        """The paths of equality deletes whose keys Spark does not read as icebergds does."""
        by_ids: dict[tuple[int, ...], list[ManifestEntry]] = defaultdict(list)
        for entry in entries_of(files):
            by_ids[entry.data_file.equality_ids].append(entry)
        return {
            entry.data_file.file_path
            for ids, entries in by_ids.items()
            for entry, why in zip(
                entries,
                self._forms.obstacles(entries, [self.keys.fields[each] for each in ids]),
                strict=True,
            )
            if why is not None
        }

    def _obstacles_in_metadata(self, files: Sequence[PlannedFile]) -> Iterator[str | None]:
        paths = [self._resolve(file.entry.data_file.file_path) for file in files]
        times = Counter(paths)
        too_many = _have_many_deletes(files)
        too_many_keys = self.keys.have_many(files)
        lacked = [self.lacked_columns(file) for file in files]
        too_varied = len(set(lacked) - {None, ()}) > _MOST_PARTITIONS
        # Only footers show which files have field ids.
        is_footless = self._needs_footers and len(files) > MOST_FOOTERS
        for file, path, columns in zip(files, paths, lacked, strict=True):
            if is_footless:
                yield "the table has a name mapping and the scan many files"
            elif times[path] > 1:
                # Spark would read it only once.
                yield "listed more than once"
            elif not is_plain_path(path):
                yield "a path that Spark may not open unchanged"
            elif file.contradicted:
                yield "its partition has other values than its columns"
            elif file.deletes.position_deletes and (self._leaves_deletes or too_many):
                yield "position deletes"
            elif file.deletes.equality_deletes and (
                self._leaves_deletes or too_many_keys or not self.keys.can_apply_to(file)
            ):
                yield "equality deletes"
            elif columns is None or (columns and (too_varied or file.deletes.position_deletes)):
                yield "may lack partition columns"
            else:
                yield self._obstacle(file)

    def lacked_columns(self, file: PlannedFile) -> LackedColumns | None:
        """The identity partition columns that a file may lack, with their values.

        None if one of these values cannot be passed to Spark.
        """
        data_file = file.entry.data_file
        return self._partitions[data_file.spec_id].lacked_by(data_file)

    def _obstacle(self, file: PlannedFile) -> str | None:
        data_file = file.entry.data_file
        if data_file.file_format is not FileFormat.PARQUET:
            return f"{data_file.file_format.upper()} format"
        if data_file.key_metadata is not None:
            return "key metadata"
        if self._residuals[data_file.spec_id](data_file.partition) != TRUE:
            return "the filter may select only some of the rows"
        return None


def native_rule(
    plan: ReadPlan, names: Iterable[str], keys: KeyColumns = NO_KEYS
) -> NativeRule | None:
    """The rule of a scan; None if Spark's reader cannot read any of its files.

    Args:
        names: of all columns in the table's schemas, at every level.
        keys: the key columns of the equality deletes that Spark may apply.
    """
    names = frozenset(names)
    if native_obstacle(plan, names) is not None:
        return None
    columns = (*plan.columns.fields, *keys.added)
    return NativeRule(
        Schema(columns),
        keys,
        plan.io.resolve,
        {
            spec_id: residual_evaluator(
                TRUE if plan.for_changes else plan.row_filter, spec, plan.table_schema
            )
            for spec_id, spec in plan.specs.items()
        },
        {spec_id: PartitionColumns.of(spec, columns) for spec_id, spec in plan.specs.items()},
        # A column `_metadata` hides Spark's own, which has the positions of rows. Deletes read in
        # planning must have the counts in the manifests.
        plan.wrong_counts is not WrongCounts.FAIL
        or any(name.lower() == "_metadata" for name in names),
        plan.name_mapping is not None,
        FormRule.of(plan),
    )


def _have_many_deletes(files: Iterable[PlannedFile]) -> bool:
    """Whether position deletes are too many to be read while planning."""
    with_deletes = [file for file in files if file.deletes.position_deletes]
    deletes = {
        (delete.file_path, delete.content_offset): delete
        for file in with_deletes
        for delete in (entry.data_file for entry in file.deletes.position_deletes)
    }
    nbytes = sum(delete.stored_size for delete in deletes.values())
    rows = sum(file.entry.data_file.record_count for file in with_deletes)
    return nbytes > _MOST_DELETE_BYTES or len(deletes) > _MOST_DELETES or rows > _MOST_ROWS


def native_obstacle(plan: ReadPlan, names: Iterable[str]) -> str | None:
    """Why Spark's reader cannot read any file of a scan; None if it may read some.

    Args:
        names: of all columns in the table's schemas, at every level.
    """
    columns = plan.columns.fields
    if not columns:
        return "no columns are read"
    for column in columns:
        if not (is_native_column(column) or _is_row_position(plan, column)):
            return f"column {column.name} ({column.field_type}) needs icebergds' own reader"
    if any(name.lower().startswith(NATIVE_PREFIX) for name in names):
        return f"a column's name begins with {NATIVE_PREFIX}"
    return None


def _is_row_position(plan: ReadPlan, column: NestedField) -> bool:
    """Whether Spark's own metadata columns can provide a column: a row's file or position."""
    return plan.for_changes and column.field_id in (FILE_PATH.field_id, POS.field_id)
