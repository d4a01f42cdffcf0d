"""Answers aggregates from metadata, for the files of a scan for which that is exact.

A file is answered whole or not at all: if the filter selects all of its rows, its groups are known,
and its counts and bounds say what is asked for. The other files are left to be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import compress
from typing import Any

from icebergds.expr.bounds import decode_bounds, is_floating
from icebergds.expr.literals import begins_once, parse_time_zone
from icebergds.expr.metrics import INHERITED
from icebergds.expr.nodes import LOCAL_DAY, Expr, Term
from icebergds.formats.deletes.existing_deletes import read_existing_deletes
from icebergds.formats.deletes.positions import PositionSet
from icebergds.formats.manifests.side_by_side import uncollected
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.operations.read.planned_scan import PlannedScan, selects_whole
from icebergds.scan.column_paths import locate
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import DELETED
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    NestedField,
)
from icebergds.spec.values.dates import MICROS_PER_DAY, civil_from_days


class Function(StrEnum):
    """What is computed of the rows, or of the values of a column that are not null."""

    COUNT = "count"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of a column.

    Attributes:
        column: None to count rows.
    """

    function: Function
    column: NestedField | None = None


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What rows are grouped by.

    Attributes:
        term: the day or the year of the column; None for its own values.
    """

    column: NestedField
    term: Term | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """Aggregates of the rows that meet a condition, by groups.

    Attributes:
        condition: bound to the schema that is read; exactly the rows that it selects count.
        keys: none for one group of all rows.
        time_zone: of the days and years of instants.
    """

    condition: Expr
    aggregates: tuple[Aggregate, ...]
    keys: tuple[GroupKey, ...] = ()
    time_zone: str | None = None

    @property
    def columns(self) -> tuple[NestedField, ...]:
        """The columns that the groups and the aggregates are computed from, each once."""
        found = [key.column for key in self.keys]
        found += [each.column for each in self.aggregates if each.column is not None]
        return tuple({column.field_id: column for column in found}.values())


@dataclass(slots=True)
class Group:
    """The aggregates of a group, as far as files answered them.

    Attributes:
        values: in-memory values of the key columns of some row.
        results: one for each aggregate; None for the least or greatest of no values.
    """

    values: tuple[Any, ...]
    results: list[Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """What metadata answers.

    Attributes:
        files: how many files it answers.
        unread: the files that it does not answer.
    """

    groups: Sequence[Group]
    files: int
    unread: tuple[PlannedFile, ...] = field(repr=False)


def answer(scan: PlannedScan, asked: Asked) -> Answered:
    """Answers aggregates of a scan's rows from the metadata of its files, as far as it is exact.

    Args:
        scan: planned with the metrics of the columns that are asked for.

    Raises:
        CorruptFileError, MissingFileError: a deletion vector cannot be read.
    """
    if scan.plan.wrong_counts is not WrongCounts.FAIL:
        # Metadata is known to be wrong.
        return Answered((), 0, scan.files)
    with uncollected():
        return _answer(scan, asked)


def _answer(scan: PlannedScan, asked: Asked) -> Answered:
    facts = _Facts(scan, asked)
    possible = [facts.may_tell(file) for file in scan.files]
    live = iter(_rows(scan, list(compress(scan.files, possible))))
    groups: dict[tuple[Any, ...], Group] = {}
    unread = []
    for file, is_possible in zip(scan.files, possible, strict=True):
        rows = next(live) if is_possible else None
        found = None if rows is None else facts.of(file, rows)
        if found is None:
            unread.append(file)
            continue
        key, values, results = found
        if not rows:
            continue
        group = groups.get(key)
        if group is None:
            groups[key] = Group(values, results)
        else:
            group.results = _all_merged(asked, group.results, results)
    return Answered(tuple(groups.values()), len(scan.files) - len(unread), tuple(unread))


def total(answered: Answered, asked: Asked) -> list[Any]:
    """The aggregates of all groups together, as far as files answered them."""
    results: list[Any] = [
        0 if each.function is Function.COUNT else None for each in asked.aggregates
    ]
    for group in answered.groups:
        results = _all_merged(asked, results, group.results)
    return results


def distinct_values(answered: Answered, asked: Asked, column: NestedField) -> int:
    """The number of distinct values of a column that is a key, without null."""
    place = asked.keys.index(GroupKey(column))
    return len({group.values[place] for group in answered.groups} - {None})


def returns_deleted(plan: ReadPlan) -> bool:
    """Whether a read returns deleted rows, marked as such."""
    return locate(plan.columns.fields, DELETED.field_id) is not None


def _rows(scan: PlannedScan, files: Sequence[PlannedFile]) -> list[int | None]:
    """The number of rows of each file that are returned; None if only reading it shows that.

    Deletion vectors are read. Position deletes may name a row twice, and equality deletes keys that
    a file does not have.
    """
    if returns_deleted(scan.plan):
        return [_stored_rows(file) for file in files]
    vectors = {file.entry.data_file.file_path: found for file in files if (found := _vector(file))}
    deleted = read_existing_deletes(scan.state.io, vectors) if vectors else {}
    return [_live_rows(file, deleted) for file in files]


def _stored_rows(file: PlannedFile) -> int | None:
    rows = file.entry.data_file.record_count
    # A negative count is unknown.
    return rows if rows >= 0 else None


def _vector(file: PlannedFile) -> list[DataFile]:
    """The deletion vector of a file; nothing if it has other deletes."""
    deletes = file.deletes
    found = [entry.data_file for entry in deletes.position_deletes]
    is_one = len(found) == 1 and found[0].is_deletion_vector and not deletes.equality_deletes
    return found if is_one else []


def _live_rows(file: PlannedFile, deleted: Mapping[str, PositionSet]) -> int | None:
    rows = _stored_rows(file)
    if rows is None or not file.has_deletes:
        return rows
    positions = deleted.get(file.entry.data_file.file_path)
    if positions is None or not len(positions):
        return None if positions is None else rows
    # Positions may be past the end.
    beyond = 0 if positions.last < rows else int((positions.positions() >= rows).sum())
    return rows - len(positions) + beyond


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXACT_BOUNDS = (BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMPTZ)
"""Types of which bounds are values, but for NaN and zeros."""

# Types whose partition values are read as values of the column, whatever type the column had.
_OF_PARTITIONS = (BOOLEAN, INT, LONG, DATE, STRING)


class _Facts:
    """What metadata says about single files."""

    def __init__(self, scan: PlannedScan, asked: Asked) -> None:
        self._asked = asked
        self._columns = [_Kind.of(column) for column in asked.columns]
        self._counts_rows = all(each.column is None for each in asked.aggregates)
        self._is_whole = selects_whole(scan, asked.condition)
        self._places = {
            spec_id: dict(_identity_places(spec, asked.columns))
            for spec_id, spec in scan.plan.specs.items()
        }

    def may_tell(self, file: PlannedFile) -> bool:
        """Whether the filter selects all rows of a file, and deletes do not prevent an answer."""
        if file.contradicted and self._columns:
            return False
        if file.has_deletes and not self._counts_rows:
            return False
        return self._is_whole(file)

    def of(
        self, file: PlannedFile, rows: int
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], list[Any]] | None:
        """The group of a file, key values of it, and its results; None if it must be read.

        Args:
            rows: the number of its rows that are not deleted.
        """
        data_file = file.entry.data_file
        columns = {kind.field_id: self._column(kind, data_file) for kind in self._columns}
        keys = []
        values = []
        for key in self._asked.keys:
            known = columns[key.column.field_id]
            number = _group_of(key, known, data_file.record_count, self._asked.time_zone)
            if number is None:
                return None
            keys.append(number)
            values.append(known.least)
        results = []
        for each in self._asked.aggregates:
            result = _result(each, columns, rows)
            if result is _UNKNOWN:
                return None
            results.append(result)
        return tuple(keys), tuple(values), results

    def _column(self, kind: _Kind, data_file: DataFile) -> _Column:
        field_id = kind.field_id
        place = self._places[data_file.spec_id].get(field_id)
        if place is not None:
            value = data_file.partition[place]
            nulls = data_file.record_count if value is None else 0
            return _Column(nulls, value, value)
        rows = data_file.record_count
        null_count = data_file.null_value_counts.get(field_id)
        is_counted = not kind.is_inherited and data_file.value_counts.get(field_id) == rows
        if not is_counted or null_count is None or not 0 <= null_count <= rows:
            return _Column(None)
        if not kind.has_exact_bounds or (
            kind.is_floating and data_file.nan_value_counts.get(field_id) != 0
        ):
            return _Column(null_count)
        bounds = decode_bounds(
            kind.field_type,
            data_file.lower_bounds.get(field_id),
            data_file.upper_bounds.get(field_id),
            True,
            data_file.file_format,
        )
        least, greatest = bounds.lower, bounds.upper
        if kind.is_floating and not (least and greatest):
            # Bounds do not say which zero it is.
            least = greatest = None
        return _Column(null_count, least, greatest)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A column, and what all files have in common that store it."""

    field_id: int
    field_type: IcebergType
    is_inherited: bool
    is_floating: bool
    has_exact_bounds: bool

    @classmethod
    def of(cls, column: NestedField) -> _Kind:
        field_id, kind = column.field_id, column.field_type
        is_exact = kind in EXACT_BOUNDS or isinstance(kind, DecimalType)
        return cls(field_id, kind, field_id in INHERITED, is_floating(kind), is_exact)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a file.

    Attributes:
        nulls: how many of its values are null; None if that is not known.
        least, greatest: of the other values; None if they are not known, or there are none.
    """

    nulls: int | None
    least: Any = None
    greatest: Any = None


_UNKNOWN = object()


def _identity_places(
    spec: PartitionSpec, columns: Iterable[NestedField]
) -> Iterator[tuple[int, int]]:
    """The ids of columns whose values are those of a partition, with their places in it."""
    wanted = {column.field_id: column.field_type for column in columns}
    for place, part in enumerate(spec.fields):
        if isinstance(part.transform, IdentityTransform):
            kind = wanted.get(part.source_id)
            if kind in _OF_PARTITIONS or isinstance(kind, DecimalType):
                yield part.source_id, place


def _group_of(key: GroupKey, column: _Column, rows: int, time_zone: str | None) -> Any:
    """What the group of all rows of a file is known by; None if it has several groups."""
    if column.nulls == rows:
        return ("null",)
    if column.nulls != 0 or column.least is None or is_floating(key.column.field_type):
        return None
    if key.term is None:
        return (column.least,) if column.least == column.greatest else None
    period = _period(key, column.least, time_zone)
    return period if period == _period(key, column.greatest, time_zone) else None


def _period(key: GroupKey, value: int, time_zone: str | None) -> tuple[int, ...] | None:
    """The day or the year of a value; None if it is not known."""
    kind = key.column.field_type
    if kind == DATE:
        day = value
    elif kind == TIMESTAMP:
        day = value // MICROS_PER_DAY
    elif kind == TIMESTAMPTZ and time_zone is not None:
        zone = parse_time_zone(time_zone)
        try:
            local = (_EPOCH + timedelta(microseconds=value)).astimezone(zone).date()
            after = local + timedelta(days=1)
        except OverflowError:
            return None
        if not (begins_once(local, time_zone) and begins_once(after, time_zone)):
            # The day before it interrupts a day that begins twice.
            return None
        day = (local - _EPOCH.date()).days
    else:
        return None
    return (day,) if key.term == LOCAL_DAY else (civil_from_days(day)[0],)


def _result(aggregate: Aggregate, columns: Mapping[int, _Column], rows: int) -> Any:
    """The aggregate of a file's rows; `_UNKNOWN` if metadata does not say."""
    if aggregate.column is None:
        return rows
    column = columns[aggregate.column.field_id]
    if column.nulls is None:
        return _UNKNOWN
    if aggregate.function is Function.COUNT:
        return rows - column.nulls
    if column.nulls == rows:
        return None
    found = column.least if aggregate.function is Function.MIN else column.greatest
    return _UNKNOWN if found is None else found


def _all_merged(asked: Asked, some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    return [
        _merged(each.function, one, other)
        for each, one, other in zip(asked.aggregates, some, others, strict=True)
    ]


def _merged(function: Function, one: Any, other: Any) -> Any:
    if function is Function.COUNT:
        return one + other
    if one is None or other is None:
        return other if one is None else one
    return min(one, other) if function is Function.MIN else max(one, other)
