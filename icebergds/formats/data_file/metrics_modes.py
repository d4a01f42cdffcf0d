"""Parses which metrics are kept for each column: `write.metadata.metrics.*`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from icebergds.errors import InvalidOptionError
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.table_properties import METRICS_COLUMN, METRICS_DEFAULT, METRICS_MAX_COLUMNS
from icebergds.spec.transforms import preserves_order
from icebergds.spec.types import IcebergType, children, is_scalar
from icebergds.suggestions import did_you_mean


class MetricsKind(StrEnum):
    """Which metrics are kept for a column."""

    NONE = "none"
    COUNTS = "counts"
    TRUNCATE = "truncate"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """A column's metrics mode; `length` is that of truncated bounds, in code points or bytes."""

    kind: MetricsKind
    length: int = 0

    @property
    def has_counts(self) -> bool:
        return self.kind is not MetricsKind.NONE

    @property
    def has_bounds(self) -> bool:
        return self.kind in (MetricsKind.TRUNCATE, MetricsKind.FULL)


NONE = MetricsMode(MetricsKind.NONE)
COUNTS = MetricsMode(MetricsKind.COUNTS)
FULL = MetricsMode(MetricsKind.FULL)


def truncate(length: int) -> MetricsMode:
    """The mode that keeps counts, and bounds truncated to a length."""
    return MetricsMode(MetricsKind.TRUNCATE, length)


@dataclass(frozen=True, slots=True)
class MetricsModes:
    """Metrics modes by field id, and the default of all other columns."""

    default: MetricsMode
    by_id: Mapping[int, MetricsMode] = field(default_factory=dict)

    def __getitem__(self, field_id: int) -> MetricsMode:
        return self.by_id.get(field_id, self.default)


def metrics_modes(
    properties: Mapping[str, str], schema: Schema, sort_order: SortOrder
) -> MetricsModes:
    """The metrics modes that a table's properties set.

    If no default is set, at most `write.metadata.metrics.max-inferred-column-defaults` columns have
    metrics: those of a struct before those of the structs inside it. Sort columns have bounds even
    if other columns have none. Modes of columns that are not in the schema are ignored. The columns
    of position deletes have exact bounds, which show readers that a delete file references only one
    data file.

    Raises:
        InvalidOptionError: a mode is invalid.
    """
    limit = METRICS_MAX_COLUMNS.of(properties)
    by_id: dict[int, MetricsMode] = {}
    default = truncate(16)
    if METRICS_DEFAULT.name in properties:
        default = _parse_mode(properties, METRICS_DEFAULT.name)
    elif len(schema.fields_by_id) > limit:
        measured = _by_priority(schema.as_struct())
        by_id = dict.fromkeys((i for i, _ in zip(measured, range(limit), strict=False)), default)
        default = NONE
    sorted_default = default if default.has_bounds else truncate(16)
    for sort_field in sort_order.fields:
        if preserves_order(sort_field.transform):
            by_id[sort_field.source_id] = sorted_default
    for column, name in METRICS_COLUMN.by_column(properties).items():
        mode = _parse_mode(properties, name)
        field_id = schema.find_id(column)
        if field_id is not None:
            by_id[field_id] = mode
    by_id[DELETE_FILE_PATH.field_id] = by_id[DELETE_POS.field_id] = FULL
    return MetricsModes(default, by_id)


def check_metrics_columns(properties: Mapping[str, str], schema: Schema) -> None:
    """Checks that the columns of `write.metadata.metrics.column.*` are in the schema.

    For new tables only, like Java Iceberg: a column may be dropped later.

    Raises:
        InvalidOptionError: a column is not in the schema; suggests the nearest one.
    """
    for column, name in METRICS_COLUMN.by_column(properties).items():
        if schema.find_id(column) is None:
            near = did_you_mean(column, schema.ids_by_name)
            raise InvalidOptionError(
                f"property {name} is {properties[name]!r}, but the table has no column {column!r}"
                + (f"; {near}" if near else "")
            )


_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_PLAIN = {"none": NONE, "counts": COUNTS, "full": FULL}


def _parse_mode(properties: Mapping[str, str], name: str) -> MetricsMode:
    text = properties[name].strip().lower()
    mode = _PLAIN.get(text)
    found = _TRUNCATE.fullmatch(text)
    if found is not None and int(found[1]) > 0:
        mode = truncate(int(found[1]))
    if mode is None:
        near = did_you_mean(text, (*_PLAIN, "truncate(16)"))
        raise InvalidOptionError(
            f"property {name} is {properties[name]!r}, expected {METRICS_DEFAULT.kind.expected}"
            + (f"; {near}" if near else "")
        )
    return mode


def _by_priority(field_type: IcebergType) -> Iterator[int]:
    """Ids of scalar columns: those directly inside a type first, then those further down."""
    fields = children(field_type)
    yield from (f.field_id for f in fields if is_scalar(f.field_type))
    for nested in fields:
        yield from _by_priority(nested.field_type)
