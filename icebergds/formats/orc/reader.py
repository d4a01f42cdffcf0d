"""Reads ORC data files with pyarrow.

A stripe belongs to the byte range that contains its first byte, whose offset is the split offset
that writers record. Stripes are decoded whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.orc as orc

from icebergds.errors import CorruptFileError, UnsupportedFeatureError
from icebergds.formats.arrow.errors import decoding
from icebergds.formats.arrow.types import FIELD_ID
from icebergds.formats.data_file.encryption import encrypted
from icebergds.formats.data_file.file_schema import (
    ColumnKind,
    FileColumn,
    columns_of,
    restrict,
    to_schema,
    walk_columns,
    with_ids,
)
from icebergds.formats.data_file.projection import needed_leaves, plan_projection
from icebergds.formats.data_file.read_request import PositionedBatch, ReadRequest
from icebergds.formats.data_file.shredded_variants import refuse_shredded
from icebergds.formats.orc.tail import Stripe, check_types, is_encrypted, stripes_of
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.types import TypeId

_INSTANTS = frozenset({TypeId.TIMESTAMPTZ, TypeId.TIMESTAMPTZ_NS})
# Earlier versions silently wrap timestamps that do not fit nanoseconds.
_FIRST_PYARROW_FOR_TIMESTAMPS = 25


class OrcReader:
    """An open ORC file.

    Args:
        handle: the open file; it is not closed.
        location: of the file, for errors.
        table_schema: gives columns their field ids by name if the file has none.
        name_mapping: used for that instead of the table's schema, if given.

    Raises:
        CorruptFileError: the file is damaged or not an ORC file.
        UnsupportedFeatureError: columns are encrypted.
    """

    def __init__(
        self,
        handle: pa.NativeFile,
        location: str,
        *,
        table_schema: Schema,
        name_mapping: NameMapping | None,
    ) -> None:
        self._location = location
        with decoding(location, "ORC"):
            self._file = orc.ORCFile(handle)
            tail = self._file.reader.serialized_file_tail()
            self._stripes = self._read_stripes(tail)
            if is_encrypted(tail):
                raise encrypted(location)
            columns = self._read_columns(tail)
        self._columns = with_ids(columns, table_schema, name_mapping)

    @property
    def file_schema(self) -> Schema:
        """The file's columns that have ids."""
        return to_schema(self._columns)

    @property
    def num_rows(self) -> int:
        """The number of rows that the file's tail states."""
        return int(self._file.nrows)

    def batches(
        self, request: ReadRequest, start: int | None = None, length: int | None = None
    ) -> Iterator[PositionedBatch]:
        """Reads the stripes that begin in a byte range; the row filter skips nothing.

        See `DataFileReader.batches`.

        Raises:
            UnsupportedFeatureError: a timestamp is outside the years 1677 to 2262, a column is
                stored with a time zone and read without one or the reverse, or pyarrow is too old
                for timestamps.
        """
        leaves = needed_leaves(self._columns, request.schema, self._location)
        refuse_shredded(self._columns, leaves, self._location)
        self._check_timestamps(leaves, request.schema)
        selection = _select(self._columns, leaves)
        projection = plan_projection(
            restrict(self._columns, selection.leaves),
            request.schema,
            request.constants,
            self._location,
        )
        first_position = 0
        for index, stripe in enumerate(self._stripes):
            if stripe.num_rows and _begins_in(stripe, start, length):
                rows = projection.apply(self._read(index, selection), stripe.num_rows)
                for offset in range(0, stripe.num_rows, request.batch_size):
                    batch = rows.slice(offset, request.batch_size)
                    yield PositionedBatch(batch, first_position + offset, batch.num_rows)
            first_position += stripe.num_rows

    def _read_columns(self, tail: bytes) -> tuple[FileColumn, ...]:
        try:
            check_types(tail)
            return columns_of([_declared(field) for field in self._file.schema])
        except ValueError as error:
            raise CorruptFileError(f"{self._location}: {error}") from error

    def _read_stripes(self, tail: bytes) -> list[Stripe]:
        try:
            stripes = stripes_of(tail)
        except ValueError as error:
            raise CorruptFileError(f"{self._location}: the file's tail is damaged") from error
        if (
            len(stripes) != self._file.nstripes
            or sum(s.num_rows for s in stripes) != self._file.nrows
        ):
            raise CorruptFileError(
                f"{self._location}: the file's tail is damaged: its stripes do not match its "
                "counts of stripes and rows"
            )
        return stripes

    def _read(self, stripe: int, selection: _Selection) -> list[pa.Array]:
        """The selected columns of a stripe, in the file's order."""
        if not selection.leaves:
            return []
        try:
            with decoding(self._location, "ORC"):
                batch = self._file.read_stripe(stripe, selection.names)
        except CorruptFileError as error:
            if "out of range for nanosecond" not in str(error):
                raise
            raise UnsupportedFeatureError(
                f"{self._location}: stripe {stripe} holds timestamps outside of the years 1677 to "
                f"2262, which cannot be read from ORC ({error.__cause__})"
            ) from error
        if batch.num_rows != self._stripes[stripe].num_rows:
            raise CorruptFileError(
                f"{self._location}: stripe {stripe} has {batch.num_rows} rows, the file's tail "
                f"says {self._stripes[stripe].num_rows}"
            )
        columns: list[pa.Array] = batch.columns
        return columns

    def _check_timestamps(self, leaves: AbstractSet[int], schema: Schema) -> None:
        """Rejects timestamps that would be read wrongly.

        Local times cannot be read as instants: their time zone is the writer's, which is not
        stored.
        """
        for column in walk_columns(self._columns):
            if not pa.types.is_timestamp(column.arrow_type) or column.leaves[0] not in leaves:
                continue
            if int(pa.__version__.partition(".")[0]) < _FIRST_PYARROW_FOR_TIMESTAMPS:
                raise UnsupportedFeatureError(
                    f"column {column.name!r} of {self._location}: reading timestamps from ORC "
                    f"needs pyarrow {_FIRST_PYARROW_FOR_TIMESTAMPS} or later, found "
                    f"{pa.__version__}"
                )
            field = schema.find_field(-1 if column.field_id is None else column.field_id)
            if field is None:
                continue
            zoned = getattr(field.field_type, "type_id", None) in _INSTANTS
            if zoned != (column.arrow_type.tz is not None):
                stored = "instants" if column.arrow_type.tz else "local times"
                raise UnsupportedFeatureError(
                    f"column {field.name!r} of {self._location}: the file stores {stored}, which "
                    f"cannot be read as {field.field_type}"
                )


@dataclass(frozen=True, slots=True)
class _Selection:
    """The columns to read with pyarrow: their `names` (None for all) and their `leaves`."""

    names: list[str] | None
    leaves: frozenset[int]


def _select(columns: Sequence[FileColumn], leaves: frozenset[int]) -> _Selection:
    """The narrowest selection by name that contains the leaves.

    Names are paths through structs, joined with dots; lists add nothing to a path and maps can
    only be read whole. If a path is ambiguous, all columns are read.
    """
    paths = Counter(_paths(columns, ""))
    names: list[str] = []
    selected: set[int] = set()
    for path, column in _parts(columns, "", leaves):
        names.append(path)
        selected.update(column.leaves)
    if any(paths[name] > 1 for name in names):
        return _Selection(None, frozenset(leaf for column in columns for leaf in column.leaves))
    return _Selection(names, frozenset(selected))


def _paths(columns: Sequence[FileColumn], prefix: str) -> Iterator[str]:
    """The paths by which pyarrow finds columns."""
    for column in columns:
        yield prefix + column.name
        yield from _paths(_named_below(column), f"{prefix}{column.name}.")


def _parts(
    columns: Sequence[FileColumn], prefix: str, leaves: frozenset[int]
) -> Iterator[tuple[str, FileColumn]]:
    """Disjoint columns that together contain the leaves, each with its path."""
    for column in columns:
        needed = leaves.intersection(column.leaves)
        path = prefix + column.name
        below = _named_below(column)
        whole = len(needed) == len(column.leaves) or not below or _holds_map(column)
        if needed and whole:
            yield path, column
        elif needed:
            yield from _parts(below, f"{path}.", leaves)


def _named_below(column: FileColumn) -> tuple[FileColumn, ...]:
    """The nearest columns below that are fields of structs, and so have names."""
    if column.kind is ColumnKind.STRUCT:
        return column.children
    return tuple(named for child in column.children for named in _named_below(child))


def _holds_map(column: FileColumn) -> bool:
    """Whether a map lies between the column and the nearest named columns below."""
    if column.kind is ColumnKind.LIST:
        return _holds_map(column.children[0])
    return column.kind is ColumnKind.MAP


def _declared(field: pa.Field) -> pa.Field:
    """The field that a column's attributes declare (spec: Appendix A, ORC)."""
    attributes = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    field_id = _number(field, attributes, "iceberg.id") if "iceberg.id" in attributes else -1
    return pa.field(
        field.name,
        _declared_type(field, attributes),
        nullable=attributes.get("iceberg.required", "false").lower() != "true",
        metadata={FIELD_ID: str(field_id)},
    )


def _declared_type(field: pa.Field, attributes: Mapping[str, str]) -> pa.DataType:
    stored = field.type
    if pa.types.is_struct(stored):
        return pa.struct([_declared(child) for child in stored])
    if pa.types.is_list(stored):
        return pa.list_(_declared(stored.value_field))
    if pa.types.is_map(stored):
        return pa.map_(
            _declared(stored.key_field).with_nullable(False), _declared(stored.item_field)
        )
    if pa.types.is_timestamp(stored):
        unit = attributes.get("iceberg.timestamp-unit", "MICROS").upper()
        return pa.timestamp("ns" if unit == "NANOS" else "us", stored.tz)
    if stored == pa.int64() and attributes.get("iceberg.long-type") == "TIME":
        return pa.time64("us")
    if pa.types.is_binary(stored):
        match attributes.get("iceberg.binary-type"):
            case "UUID":
                return pa.uuid()
            case "FIXED":
                return pa.binary(_number(field, attributes, "iceberg.length"))
    return stored


def _number(field: pa.Field, attributes: Mapping[str, str], name: str) -> int:
    """The value of a numeric attribute.

    Raises:
        ValueError: it is missing, or not a whole number below 2^31.
    """
    text = attributes.get(name, "")
    if not text.isdecimal() or int(text) >= 2**31:
        raise ValueError(f"column {field.name!r}: the attribute {name} is {text!r}, not a number")
    return int(text)


def _begins_in(stripe: Stripe, start: int | None, length: int | None) -> bool:
    if start is None:
        return True
    return start <= stripe.offset and (length is None or stripe.offset < start + length)
