"""Converts values to columns of other types as Spark's ANSI store assignment does.

Numbers convert to any numeric type, dates and timestamps to each other, and most types to text.
Integers drop the fraction, decimals round half up, and floating point numbers round to the nearest;
a value that is out of range is an error. Conversions without loss are in `write.rows.conversion`.

Time zones are imported only if needed, because every task that writes imports this module.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.types import is_binary
from icebergds.spec.types import ScalarType, TypeId
from icebergds.spec.values.dates import MICROS_PER_DAY, days_from_civil

if TYPE_CHECKING:
    from icebergds.write.rows.time_zones import Micros

_INTEGERS = (TypeId.INT, TypeId.LONG)
_FLOATS = (TypeId.FLOAT, TypeId.DOUBLE)
_NUMBERS = (*_INTEGERS, *_FLOATS, TypeId.DECIMAL)
_TIMES = (TypeId.DATE, TypeId.TIMESTAMP, TypeId.TIMESTAMPTZ)
_MOST_DIGITS, _MOST_WIDE_DIGITS = 38, 76
_SHOWN = 60
# The shortest text of a double has at most 17 significant digits.
_DIGITS_OF_DOUBLE = 17
_FIRST_DAY, _LAST_DAY = days_from_civil(1, 1, 1), days_from_civil(9999, 12, 31)


def can_assign(incoming: pa.DataType, wanted: ScalarType) -> bool:
    """Whether a column of the type `wanted` can be assigned values of an Arrow type.

    `incoming` is not an extension type or dictionary. Floating point numbers are not assigned to
    strings: how Spark writes them depends on its Java version.
    """
    if wanted.type_id in _NUMBERS:
        return _is_exact(incoming) or bool(pa.types.is_floating(incoming))
    if wanted.type_id in _TIMES:
        return _is_time(incoming)
    return wanted.type_id is TypeId.STRING and (
        _is_exact(incoming)
        or _is_time(incoming)
        or is_binary(incoming)
        or bool(pa.types.is_boolean(incoming))
    )


def can_assign_exactly(incoming: pa.DataType, wanted: ScalarType) -> bool:
    """Whether an Arrow type can be assigned such that values that would change are refused."""
    return wanted.type_id in (*_INTEGERS, TypeId.DECIMAL) and _is_exact(incoming)


def needs_time_zone(incoming: pa.DataType, wanted: ScalarType) -> bool:
    """Whether an assignment needs a time zone that the incoming column does not have."""
    return wanted.type_id is TypeId.TIMESTAMPTZ and _zone_of(incoming) is None


def assign(
    array: pa.Array, wanted: ScalarType, target: pa.DataType, time_zone: str | None, where: str
) -> pa.Array:
    """Converts values to the Arrow type of a column that they can be assigned to.

    Args:
        array: the values, of a type for which `can_assign` is true.
        wanted: the column's type.
        target: `to_arrow(wanted)`.
        time_zone: of dates and local times; None for the zone of the incoming timestamps.
        where: the column and the table, for messages.

    Raises:
        InvalidDataError: a value does not fit.
    """
    if not len(array):
        return pa.array([], target)
    zone = time_zone or _zone_of(array.type)
    what = f"{where} has type {wanted}, which cannot store"
    return _checked(array, lambda part: _assigned(part, wanted, target, zone), what)


def assign_exactly(
    array: pa.Array, wanted: ScalarType, target: pa.DataType, where: str
) -> pa.Array:
    """Like `assign`, for numbers that must keep their value, such as keys.

    Raises:
        InvalidDataError: a value does not fit, or would be rounded.
    """
    what = f"{where} has type {wanted}, and keys are not rounded: it cannot store"
    return _checked(array, lambda part: _exactly(part, target), what)


def _checked(array: pa.Array, convert: Callable[[pa.Array], pa.Array], what: str) -> pa.Array:
    try:
        return convert(array)
    except ValueError as error:
        # Arrow's messages name neither the value nor the column.
        reason = "" if isinstance(error, pa.ArrowInvalid) else f" ({error})"
        raise InvalidDataError(
            f"{what} the value {_shown(_first_refused(array, convert))} of the incoming type "
            f"{array.type}{reason}; change or filter such values"
        ) from error


def _first_refused(array: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> pa.Scalar:
    """The first value that cannot be converted, found by halving."""
    while len(array) > 1:
        half = array.slice(0, len(array) // 2)
        try:
            convert(half)
        except ValueError:
            array = half
        else:
            array = array.slice(len(half))
    return array[0]


def _shown(scalar: pa.Scalar) -> str:
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError, KeyError):
        # The year or time zone is one that Python does not support.
        value = scalar.value
    return str(value)[:_SHOWN]


def _assigned(
    array: pa.Array, wanted: ScalarType, target: pa.DataType, zone: str | None
) -> pa.Array:
    match wanted.type_id:
        case TypeId.INT | TypeId.LONG:
            return _integers(array, target)
        case TypeId.FLOAT | TypeId.DOUBLE:
            return _floats(array, target)
        case TypeId.DECIMAL:
            return _decimals(array, target)
        case TypeId.DATE:
            return _dates(array, zone)
        case TypeId.TIMESTAMP:
            return _local_timestamps(array, zone)
        case TypeId.TIMESTAMPTZ:
            assert zone is not None, "local times are assigned in a time zone"
            return _instants(array, zone)
        case _:
            return _texts(array, zone)


def _exactly(array: pa.Array, target: pa.DataType) -> pa.Array:
    return _wide(array, target.scale if pa.types.is_decimal(target) else 0).cast(target)


def _integers(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(array.type):
        return pc.round(_wide(array, 0), 0, "towards_zero").cast(target)
    if pa.types.is_floating(array.type):
        # Spark converts 2^63 to the greatest long; here it is out of range.
        return pc.trunc(_no_half_floats(array)).cast(target)
    return array.cast(target)


def _floats(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(array.type):
        # Arrow parses text correctly rounded, and divides decimals inexactly.
        return array.cast(pa.string()).cast(target)
    return array.cast(target, safe=False)


def _decimals(array: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    if pa.types.is_floating(array.type):
        array = _shortest_decimals(array.cast(pa.float64()), target)
    array = _wide(array, target.scale)
    if array.type.scale > target.scale:
        array = pc.round(array, target.scale, "half_towards_infinity")
    return array.cast(target)


def _shortest_decimals(array: pa.DoubleArray, target: pa.Decimal128Type) -> pa.Array:
    """The decimals with the shortest text of each number: 1.005 is not 1.00499999999999989."""
    # Numbers this small become 0, so that all digits of the others fit.
    small = pc.less(pc.abs(array), 10.0 ** -(target.scale + 1))
    shown = pc.if_else(small, 0.0, array).cast(pa.string())
    return shown.cast(pa.decimal256(_MOST_WIDE_DIGITS, target.scale + 1 + _DIGITS_OF_DOUBLE))


def _wide(array: pa.Array, scale: int) -> pa.Array:
    """Integers or decimals as decimals that can be rounded or rescaled to a scale.

    Arrow does not detect all overflows of 38 digits: digits are added only if 76 digits fit.
    """
    if pa.types.is_integer(array.type):
        return array.cast(_wide_type(0, scale))
    if array.type.precision < _MOST_DIGITS:
        return array.cast(_wide_type(array.type.scale, scale))
    return array.cast(pa.decimal256(_MOST_WIDE_DIGITS, array.type.scale))


def _wide_type(scale: int, wanted: int) -> pa.DataType:
    if scale < wanted:
        return pa.decimal256(_MOST_WIDE_DIGITS, scale)
    return pa.decimal128(_MOST_DIGITS, scale)


def _dates(array: pa.Array, zone: str | None) -> pa.Array:
    local = _local_micros(array, zone)
    return (
        _like(array, np.floor_divide(local, MICROS_PER_DAY), pa.int64())
        .cast(pa.int32())
        .view(pa.date32())
    )


def _local_timestamps(array: pa.Array, zone: str | None) -> pa.Array:
    return _like(array, _local_micros(array, zone), pa.timestamp("us"))


def _instants(array: pa.Array, zone: str) -> pa.Array:
    from icebergds.write.rows.time_zones import first_instants, instants

    if pa.types.is_date32(array.type):
        found = first_instants(_counts(array.view(pa.int32())), zone)
    else:
        found = instants(_local_micros(array, None), zone)
    return _like(array, found, pa.timestamp("us", "UTC"))


def _local_micros(array: pa.Array, zone: str | None) -> Micros:
    """Dates and timestamps as microseconds since 1970 in local time; arbitrary for nulls."""
    if pa.types.is_date32(array.type):
        days = array.view(pa.int32()).cast(pa.int64())
        return _counts(pc.multiply_checked(days, MICROS_PER_DAY))
    micros = _counts(array.cast(pa.timestamp("us", array.type.tz)).view(pa.int64()))
    if array.type.tz is None:
        return micros
    from icebergds.write.rows.time_zones import local_times

    assert zone is not None, "instants have a time zone"
    return local_times(micros, zone)


def _texts(array: pa.Array, zone: str | None) -> pa.Array:
    incoming = array.type
    if pa.types.is_decimal(incoming):
        return _plain_texts(array)
    if pa.types.is_date32(incoming):
        _check_years(_counts(array.view(pa.int32())))
        return array.cast(pa.string())
    if pa.types.is_timestamp(incoming):
        local = _local_micros(array, zone)
        _check_years(np.floor_divide(local, MICROS_PER_DAY))
        shown = pc.strftime(_like(array, local, pa.timestamp("us")), "%Y-%m-%d %H:%M:%S")
        return pc.utf8_rtrim(pc.utf8_rtrim(shown, "0"), ".")
    return (
        array.cast(pa.binary()).cast(pa.string())
        if is_binary(incoming)
        else array.cast(pa.string())
    )


def _plain_texts(array: pa.Array) -> pa.Array:
    """Decimals as text with all digits of their scale and without exponents."""
    scale = max(array.type.scale, 0)
    wide = array.cast(pa.decimal256(_MOST_WIDE_DIGITS, scale))
    size = pc.abs(wide)
    # The unscaled integers.
    buffers = size.buffers()
    whole = pa.decimal256(_MOST_WIDE_DIGITS, 0)
    digits = pa.Array.from_buffers(whole, len(size), buffers, size.null_count, size.offset)
    shown = pc.utf8_lpad(digits.cast(pa.string()), scale + 1, "0")
    sign = pc.if_else(pc.less(wide, pa.scalar(Decimal(0), wide.type)), "-", "")
    if not scale:
        return pc.binary_join_element_wise(sign, shown, "")
    before = pc.utf8_slice_codeunits(shown, 0, -scale)
    after = pc.utf8_slice_codeunits(shown, -scale)
    return pc.binary_join_element_wise(sign, before, ".", after, "")


def _check_years(days: Micros) -> None:
    if len(days) and (days.min() < _FIRST_DAY or days.max() > _LAST_DAY):
        raise ValueError("only years 1 to 9999 become text")


def _no_half_floats(array: pa.Array) -> pa.Array:
    return array.cast(pa.float32()) if pa.types.is_float16(array.type) else array


def _counts(array: pa.Array) -> Micros:
    """Integers as 64 bits, 0 for nulls."""
    found: Micros = array.cast(pa.int64()).fill_null(0).to_numpy()
    return found


def _like(array: pa.Array, values: Micros, target: pa.DataType) -> pa.Array:
    """Values as an array, with the nulls of another array."""
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(values, pa.int64(), mask=mask).view(target)


def _zone_of(incoming: pa.DataType) -> str | None:
    return incoming.tz if pa.types.is_timestamp(incoming) else None


def _is_exact(incoming: pa.DataType) -> bool:
    return bool(pa.types.is_integer(incoming) or pa.types.is_decimal(incoming))


def _is_time(incoming: pa.DataType) -> bool:
    return bool(pa.types.is_date32(incoming) or pa.types.is_timestamp(incoming))
