"""Compares the metrics of a file's columns in its manifest with what the file has.

A manifest's bounds may be wider than the values, because writers truncate them: only bounds that
leave out a value are wrong. So are statistics of files, which some writers truncate, too: then a
value must be outside of the bounds however it was truncated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from icebergds.commit.repair_files import ColumnCorrection
from icebergds.display import printable
from icebergds.errors import FormatError
from icebergds.formats.arrow.bounding_boxes import Box, corners, covers
from icebergds.formats.data_file.bounds import Range, has_bounds
from icebergds.formats.data_file.column_metrics import FileMetrics, MeasuredColumn
from icebergds.formats.data_file.stored_file import StoredFile
from icebergds.operations.maintenance.verify.findings import (
    REPAIR,
    Finding,
    FindingKind,
    Severity,
)
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform, to_human
from icebergds.spec.types import (
    BINARY,
    STRING,
    FixedType,
    ScalarType,
    TypeId,
)
from icebergds.spec.values.binary import from_bytes

_LOST = "filters on the column leave the file out, and lose its rows"
_DELETES_LOST = "readers that choose delete files by bounds leave it out, and read deleted rows"
_NULLS = "filters for nulls, or for other values, leave the file out, and lose its rows"
_COUNTED = "counts that engines take from metadata are wrong"

# No writer truncates shorter values in a footer.
_TRUNCATED = 16
# ORC files have milliseconds, which writers round up or down.
_ORC_SLACK = {
    TypeId.TIMESTAMP: 2_000,
    TypeId.TIMESTAMPTZ: 2_000,
    TypeId.TIMESTAMP_NS: 2_000_000,
    TypeId.TIMESTAMPTZ_NS: 2_000_000,
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What a file has, by field id of the columns that it stores outside of lists and maps.

    Attributes:
        ranges: of the values; columns without values, or whose range is not known, have none.
        boxes: of geometries and geographies, only of those read from rows.
        is_exact: whether everything was read from rows; else, from the file's footer.
    """

    value_counts: Mapping[int, int]
    null_counts: Mapping[int, int]
    nan_counts: Mapping[int, int] = field(default_factory=dict)
    ranges: Mapping[int, Range] = field(default_factory=dict)
    boxes: Mapping[int, Box] = field(default_factory=dict)
    is_exact: bool = False


def check_column(
    file: DataFile, column: MeasuredColumn, name: str, found: Measured
) -> Iterator[Finding]:
    """What a manifest says wrongly of a column.

    Args:
        column: with the mode `full`.
    """
    yield from _counts(file, column, name, found)
    if column.has_box:
        yield from _box(file, column, name, found)
    else:
        yield from _bounds(file, column, name, found)


def check_column_sizes(file: DataFile, stored: StoredFile, schema: Schema) -> Iterator[Finding]:
    """Sizes of columns that no column of the file can have.

    Writers count pages, dictionaries and compression differently, and no row depends on sizes: only
    negative ones, and those beyond the whole file, are wrong.
    """
    for field_id in impossible_sizes(file, stored):
        size = stored.statistics.sizes.get(field_id)
        yield Finding(
            FindingKind.COLUMN_SIZES,
            file.file_path,
            schema.find_name(field_id) or str(field_id),
            f"{file.column_sizes[field_id]:,} bytes",
            f"{stored.size:,} bytes in all" if size is None else f"{size:,} bytes",
            "no row depends on it; engines that estimate by sizes of columns plan badly",
            REPAIR,
            is_repairable=True,
            severity=Severity.NOTE,
        )


def impossible_sizes(file: DataFile, stored: StoredFile) -> list[int]:
    """The field ids of columns whose sizes are negative, or more than that of the file."""
    return [i for i, size in file.column_sizes.items() if not 0 <= size <= stored.size]


def correction_of(file: DataFile, column: MeasuredColumn, found: Measured) -> ColumnCorrection:
    """The metrics that the manifest should have.

    Args:
        column: with the mode that the table's properties say.
    """
    field_id = column.field_id
    metrics = FileMetrics()
    if column.has_bounds and (values := found.ranges.get(field_id)) is not None:
        metrics.add_bounds(column, values)
    if column.has_box and (box := found.boxes.get(field_id)) is not None:
        metrics.add_box(field_id, box)
    return ColumnCorrection(
        value_count=found.value_counts.get(field_id),
        null_count=found.null_counts.get(field_id),
        nan_count=found.nan_counts.get(field_id, file.nan_value_counts.get(field_id)),
        lower_bound=metrics.lower_bounds.get(field_id),
        upper_bound=metrics.upper_bounds.get(field_id),
    )


def _counts(
    file: DataFile, column: MeasuredColumn, name: str, found: Measured
) -> Iterator[Finding]:
    field_id = column.field_id
    values, nulls = found.value_counts.get(field_id), found.null_counts.get(field_id)
    said = file.value_counts.get(field_id), file.null_value_counts.get(field_id)
    if len(column.path) > 1 and _leaves_out_null_structs(said, (values, nulls)):
        values = nulls = None
    for recorded, actual, what in (
        (said[0], values, "values"),
        (said[1], nulls, "nulls"),
        (file.nan_value_counts.get(field_id), found.nan_counts.get(field_id), "NaN"),
    ):
        if recorded is None or actual is None or recorded == actual:
            continue
        # Whether there are any, or nothing else, is what filters ask.
        decides = 0 in (recorded, actual) or recorded == said[0]
        yield Finding(
            FindingKind.VALUE_COUNTS,
            file.file_path,
            name,
            f"{recorded:,} {what}",
            f"{actual:,} {what}",
            _NULLS if decides else _COUNTED,
            REPAIR,
            is_repairable=True,
        )


def _leaves_out_null_structs(
    said: tuple[int | None, int | None], found: tuple[int | None, int | None]
) -> bool:
    """Whether a writer has not counted the nulls of null structs, as those of ORC files do not."""
    if said[0] is None or said[1] is None or found[0] is None or found[1] is None:
        return False
    return 0 <= found[0] - said[0] == found[1] - said[1]


def _bounds(
    file: DataFile, column: MeasuredColumn, name: str, found: Measured
) -> Iterator[Finding]:
    if not has_bounds(column.field_type):
        # Those of variants and geometries are no values of theirs.
        return
    values = found.ranges.get(column.field_id)
    slack = 0
    if file.file_format is FileFormat.ORC and not found.is_exact:
        slack = _ORC_SLACK.get(column.field_type.type_id, 0)
    for bounds, is_lower in ((file.lower_bounds, True), (file.upper_bounds, False)):
        recorded = bounds.get(column.field_id)
        if recorded is None:
            continue
        try:
            bound = from_bytes(column.field_type, recorded)
        except FormatError:
            yield _finding(file, name, f"0x{recorded[:32].hex()}", str(column.field_type), None)
            continue
        # NaN as a bound excludes nothing.
        if values is None or bound != bound:
            continue
        value = values.least if is_lower else values.greatest
        if _excludes(column.field_type, bound, value, is_lower, slack, found.is_exact):
            yield _finding(file, name, _shown(column, bound), _shown(column, value), is_lower)


def _box(file: DataFile, column: MeasuredColumn, name: str, found: Measured) -> Iterator[Finding]:
    lower = file.lower_bounds.get(column.field_id)
    upper = file.upper_bounds.get(column.field_id)
    box = found.boxes.get(column.field_id)
    if lower is None or upper is None or box is None or covers(lower, upper, box):
        return
    expected = corners(box)
    shown = "no box" if expected is None else f"0x{expected[0].hex()} to 0x{expected[1].hex()}"
    yield _finding(file, name, f"0x{lower[:32].hex()} to 0x{upper[:32].hex()}", shown, None)


def _finding(
    file: DataFile, name: str, recorded: str, found: str, is_lower: bool | None
) -> Finding:
    lost = _LOST if file.content is FileContent.DATA else _DELETES_LOST
    what = "" if is_lower is None else "from " if is_lower else "to "
    return Finding(
        FindingKind.BOUNDS,
        file.file_path,
        name,
        f"{what}{recorded}",
        f"{what}{found}",
        "readers fail, or do not filter by it" if is_lower is None else lost,
        REPAIR,
        is_repairable=True,
    )


def _excludes(
    field_type: ScalarType, bound: Any, value: Any, is_lower: bool, slack: int, is_exact: bool
) -> bool:
    """Whether a bound surely leaves out the value, or the one it was truncated from."""
    if slack:
        return bool(bound > value + slack if is_lower else bound < value - slack)
    if isinstance(field_type, FixedType) and len(bound) < len(value):
        # A lower bound may be shortened.
        return bool(bound > value if is_lower else value[: len(bound)] > bound)
    if not (bound > value if is_lower else bound < value):
        return False
    if is_exact or field_type not in (STRING, BINARY):
        return True
    if is_lower:
        return len(value) < _TRUNCATED or not bound.startswith(value)
    # The last of a truncated upper bound is one more than that of the value.
    return len(value) < _TRUNCATED or value[:-1] > bound


def _shown(column: MeasuredColumn, value: Any) -> str:
    return printable(to_human(IdentityTransform(), column.field_type, value), 60)
