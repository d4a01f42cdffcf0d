"""Which data files Spark's own Parquet reader may read for us: those it gives the same rows of.

Where there is a doubt the answer is no, and the file is read by `scan.read.files`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from icebergds.expr.nodes import TRUE, Expr
from icebergds.expr.residual import residual_evaluator
from icebergds.scan.column_paths import locate
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.manifest import FileFormat
from icebergds.spec.reserved import FILE_PATH, MAX_TABLE_FIELD_ID, POS
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TypeId,
)

NATIVE_PREFIX = "_icebergds_"
"""Of the names under which Spark reads columns: no file may have one, for Spark matches by name
where it pushes filters."""

_NATIVE_TYPES = frozenset(
    {
        TypeId.BOOLEAN,
        TypeId.INT,
        TypeId.LONG,
        TypeId.FLOAT,
        TypeId.DOUBLE,
        TypeId.DATE,
        TypeId.TIMESTAMP,
        TypeId.TIMESTAMPTZ,
        TypeId.STRING,
        TypeId.BINARY,
    }
)
# Spark's paths: not normalised, no globs, no component that it takes for a hidden file.
_PLAIN_PATH = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?[A-Za-z0-9 ._/=%+@,~-]*", re.ASCII)
_CHANGED_BY_SPARK = re.compile(r"(?<!:)//|/[._]|/$")


@dataclass(frozen=True, slots=True)
class NativeRule:
    """Tells the files of one scan apart."""

    _resolve: Callable[[str], str]
    _residuals: dict[int, Callable[[tuple[object, ...]], Expr]]
    _partition_columns: dict[int, frozenset[int]]

    @property
    def stats_ids(self) -> frozenset[int]:
        """Columns whose statistics the rule looks at."""
        return frozenset().union(*self._partition_columns.values())

    def split(self, files: Sequence[PlannedFile]) -> tuple[list[PlannedFile], list[PlannedFile]]:
        """The files for Spark's reader, and the others."""
        paths = [self._resolve(file.entry.data_file.file_path) for file in files]
        times = Counter(paths)
        native: list[PlannedFile] = []
        others: list[PlannedFile] = []
        for file, path in zip(files, paths, strict=True):
            # Spark reads a path once, however often it is named.
            fits = times[path] == 1 and is_plain_path(path) and self._holds(file)
            (native if fits else others).append(file)
        return native, others

    def _holds(self, file: PlannedFile) -> bool:
        data_file, deletes = file.entry.data_file, file.deletes
        if deletes.position_deletes or deletes.equality_deletes:
            return False
        if data_file.file_format is not FileFormat.PARQUET or data_file.key_metadata is not None:
            return False
        # A file may lack a column that its partition has: only statistics tell that it has it.
        counts = data_file.value_counts or {}
        if not self._partition_columns[data_file.spec_id] <= counts.keys():
            return False
        return self._residuals[data_file.spec_id](data_file.partition) == TRUE


def native_rule(plan: ReadPlan, names: Iterable[str]) -> NativeRule | None:
    """The rule of a scan; None where none of its files is for Spark's reader.

    Args:
        names: of all columns that the table's schemas have, at every level.
    """
    columns = plan.columns.fields
    if (
        not columns
        or plan.name_mapping is not None
        or not all(_is_native(column) or _is_place(plan, column) for column in columns)
        or any(name.lower().startswith(NATIVE_PREFIX) for name in names)
    ):
        return None
    return NativeRule(
        plan.io.resolve,
        {
            spec_id: residual_evaluator(
                TRUE if plan.for_changes else plan.row_filter, spec, plan.table_schema
            )
            for spec_id, spec in plan.specs.items()
        },
        {
            spec_id: frozenset(
                part.source_id
                for part in spec.fields
                if isinstance(part.transform, IdentityTransform)
                and locate(columns, part.source_id) is not None
            )
            for spec_id, spec in plan.specs.items()
        },
    )


def is_plain_path(path: str) -> bool:
    """Whether Spark opens the very file that is named, and neither hides nor expands it."""
    return bool(_PLAIN_PATH.fullmatch(path)) and not _CHANGED_BY_SPARK.search(path)


def _is_place(plan: ReadPlan, column: NestedField) -> bool:
    """Whether a column says where rows are, and Spark's own column will do."""
    return plan.for_changes and column.field_id in (FILE_PATH.field_id, POS.field_id)


def _is_native(field: NestedField) -> bool:
    # Files that lack a field with a default would read as null.
    return (
        field.field_id <= MAX_TABLE_FIELD_ID
        and field.initial_default is None
        and _is_native_type(field.field_type)
    )


def _is_native_type(field_type: IcebergType) -> bool:
    match field_type:
        case StructType(fields=fields):
            return bool(fields) and all(map(_is_native, fields))
        case ListType():
            return _is_native(field_type.element_field)
        case MapType():
            return _is_native(field_type.key_field) and _is_native(field_type.value_field)
        case DecimalType():
            return True
        case _:
            return field_type.type_id in _NATIVE_TYPES
