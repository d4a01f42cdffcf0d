"""Reads ORC data files with pyarrow.

A stripe belongs to the byte range that contains its first byte, whose offset is the split offset
that writers record. Stripes are decoded whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import contextmanager
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc

from icebergds.errors import CorruptFileError, UnsupportedFeatureError
from icebergds.formats.arrow.errors import decoding
from icebergds.formats.arrow.types import FIELD_ID
from icebergds.formats.data_file.encryption import encrypted
from icebergds.formats.data_file.file_schema import (
    FileColumn,
    columns_of,
    has_ids,
    restrict,
    to_schema,
    walk_columns,
    with_ids,
)
from icebergds.formats.data_file.projection import needed_leaves, plan_projection
from icebergds.formats.data_file.read_request import PositionedBatch, ReadRequest
from icebergds.formats.data_file.shredded_variants import refuse_shredded
from icebergds.formats.orc.selection import Selection, leaves_of, select, with_leaves
from icebergds.formats.orc.stripe_copy import is_in_utc
from icebergds.formats.orc.tail import (
    Stripe,
    check_types,
    checked_stripes,
    has_hybrid_calendar,
    is_encrypted,
)
from icebergds.formats.orc.timestamps import has_early_local_times, read_stripe
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.types import TypeId
from icebergds.spec.values.dates import FIRST_GREGORIAN_DAY, MICROS_PER_DAY

_INSTANTS = frozenset({TypeId.TIMESTAMPTZ, TypeId.TIMESTAMPTZ_NS})
# Earlier versions of pyarrow silently wrap timestamps that do not fit nanoseconds.
_FIRST_WITHOUT_WRAPPING = 25


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
        self._handle = handle
        self._location = location
        with decoding(location, "ORC"):
            self._file = orc.ORCFile(handle)
            self._tail = self._file.reader.serialized_file_tail()
            self._stripes = self._read_stripes(self._tail)
            if is_encrypted(self._tail):
                raise encrypted(location)
            columns = file_columns(self._file, self._tail, location)
            # Iceberg writes Gregorian dates, but leaves the calendar at its default, hybrid.
            self._is_hybrid = not has_ids(columns) and has_hybrid_calendar(self._tail)
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
            UnsupportedFeatureError: a column is stored with a time zone and read without one or the
                reverse, or the time zone of a file's writer is not known here.
        """
        leaves = needed_leaves(self._columns, request.schema, self._location)
        refuse_shredded(self._columns, leaves, self._location)
        self._check_timestamps(leaves, request.schema)
        selection = select(self._columns, leaves)
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

    def _read_stripes(self, tail: bytes) -> list[Stripe]:
        try:
            return checked_stripes(tail, self._file.nstripes, self._file.nrows)
        except ValueError as error:
            raise CorruptFileError(
                f"{self._location}: the file's tail is damaged: {error}"
            ) from error

    def _read(self, stripe: int, selection: Selection) -> list[pa.Array]:
        """The selected columns of a stripe, in the file's order."""
        if not selection.leaves:
            return []
        columns = self._decode(stripe, selection)
        counts = {len(column) for column in columns}
        if counts - {self._stripes[stripe].num_rows}:
            raise CorruptFileError(
                f"{self._location}: stripe {stripe} has {max(counts)} rows, the file's tail "
                f"says {self._stripes[stripe].num_rows}"
            )
        if self._is_hybrid:
            return _to_gregorian(restrict(self._columns, selection.leaves), columns)
        return columns

    def _decode(self, stripe: int, selection: Selection) -> list[pa.Array]:
        columns = self._decode_with_nanoseconds(stripe, selection)
        if columns is None:
            with self._decoding_parts(stripe):
                columns = read_stripe(
                    self._handle, self._tail, self._stripes[stripe], self._columns, selection
                )
        return columns

    def _decode_with_nanoseconds(self, stripe: int, selection: Selection) -> list[pa.Array] | None:
        """The columns as pyarrow reads them, or None if it does not read its timestamps right."""
        selected = restrict(self._columns, selection.leaves)
        if _wraps_timestamps() and any(map(_is_timestamp, walk_columns(selected))):
            return None
        try:
            with decoding(self._location, "ORC"):
                columns: list[pa.Array] = self._file.read_stripe(stripe, selection.names).columns
        except CorruptFileError as error:
            if "out of range for nanosecond" not in str(error):
                raise
            return None
        if has_early_local_times(selected, columns):
            with self._decoding_parts(stripe):
                if not is_in_utc(self._handle, self._tail, self._stripes[stripe]):
                    return None
        return columns

    @contextmanager
    def _decoding_parts(self, stripe: int) -> Iterator[None]:
        """Translates the errors of decoding timestamps by their parts."""
        try:
            with decoding(self._location, "ORC"):
                yield
        except ZoneInfoNotFoundError as error:
            raise UnsupportedFeatureError(
                f"{self._location}: stripe {stripe} stores timestamps in its writer's time zone: "
                f"{error.args[0]}; install the package tzdata"
            ) from error
        except NotImplementedError as error:
            raise UnsupportedFeatureError(
                f"{self._location}: stripe {stripe} has timestamps that cannot be read: {error}"
            ) from error
        except (ValueError, zlib.error) as error:
            raise CorruptFileError(
                f"{self._location}: stripe {stripe} cannot be decoded; it may be damaged: {error}"
            ) from error

    def _check_timestamps(self, leaves: AbstractSet[int], schema: Schema) -> None:
        """Rejects timestamps that would be read wrongly.

        Local times cannot be read as instants: their time zone is the writer's, which is not
        stored.
        """
        for column in walk_columns(self._columns):
            if not _is_timestamp(column) or column.leaves[0] not in leaves:
                continue
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


def file_columns(file: orc.ORCFile, tail: bytes, location: str) -> tuple[FileColumn, ...]:
    """The columns of a file, with the field ids that it has.

    Raises:
        CorruptFileError: an attribute of a column is wrong, or its type is not readable.
    """
    try:
        check_types(tail)
        # After the check: pyarrow aborts the process for types that it does not know.
        return columns_of([_declared(field) for field in file.schema])
    except ValueError as error:
        raise CorruptFileError(f"{location}: {error}") from error


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


def _is_timestamp(column: FileColumn) -> bool:
    return bool(pa.types.is_timestamp(column.arrow_type))


def _wraps_timestamps() -> bool:
    return int(pa.__version__.partition(".")[0]) < _FIRST_WITHOUT_WRAPPING


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


_Days = np.ndarray[Any, np.dtype[np.int64]]

# 0000-03-01 of the Julian calendar, in days since 1970.
_JULIAN_ORIGIN = -719_470


def _to_gregorian(columns: Sequence[FileColumn], arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Arrays with the same dates and times of day in the Gregorian calendar.

    Iceberg's dates are Gregorian throughout. Hive and Spark write hybrid ones to ORC, and say so.
    Julian leap days that the Gregorian calendar lacks become the first of March.

    Args:
        columns: describe the arrays.
        arrays: with dates, and timestamps in microseconds or nanoseconds, of the hybrid calendar.
    """
    replaced = {
        leaf: converted
        for leaf, array in leaves_of(columns, arrays)
        if (converted := _converted(array)) is not None
    }
    return [with_leaves(array, col, replaced) for array, col in zip(arrays, columns, strict=True)]


def _converted(array: pa.Array) -> pa.Array | None:
    """The array with other days; None if none of its values is affected."""
    if pa.types.is_date32(array.type):
        per_day, width = 1, pa.int32()
    elif pa.types.is_timestamp(array.type) and array.type.unit == "us":
        per_day, width = MICROS_PER_DAY, pa.int64()
    else:
        # Timestamps in nanoseconds begin in 1677.
        return None
    counts = array.view(width).fill_null(0).to_numpy()
    early = counts < FIRST_GREGORIAN_DAY * per_day
    if not early.any():
        return None
    out = counts.copy()
    days = counts[early].astype(np.int64) // per_day
    out[early] += (_shifts(days) * per_day).astype(counts.dtype)
    mask = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(out, width, mask=mask).view(array.type)


def _shifts(days: _Days) -> _Days:
    """By how many days a Julian date is later in the Gregorian calendar.

    Years begin in March, so that a leap day ends one: then a shift holds for whole years.
    """
    year = (4 * (days - _JULIAN_ORIGIN) + 3) // 1461
    shifts: _Days = 2 - year // 100 + year // 400
    return shifts
