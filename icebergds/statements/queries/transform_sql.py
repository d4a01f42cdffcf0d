"""Writes partition transforms as Spark SQL on a variable `x` (spec: Partition Transforms).

They do not depend on the session's time zone. Only Spark knows the type of `x`: `typeof(x)` is a
constant, so Spark keeps one branch of each CASE.
"""

from __future__ import annotations

_DAY = 86_400_000_000
_HOUR = 3_600_000_000
_MICROS = "unix_micros(CAST(x AS TIMESTAMP))"
_TIME_EXPECTED = "'{} cannot process ', typeof(x), ': expected a {}'"


def _periods(micros: int) -> str:
    """The number of whole periods of `micros` microseconds since 1970, rounded down."""
    return f"CAST(({_MICROS} - pmod({_MICROS}, {micros})) div {micros} AS INT)"


def _refused(problem: str) -> str:
    return f"raise_error(concat({problem}))"


def _day(function: str) -> str:
    """The day as a date."""
    return (
        f"CASE typeof(x) WHEN 'timestamp' THEN date_from_unix_date({_periods(_DAY)})"
        " WHEN 'timestamp_ntz' THEN CAST(x AS DATE) WHEN 'date' THEN CAST(x AS DATE)"
        f" ELSE {_refused(_TIME_EXPECTED.format(function, 'date or timestamp'))} END"
    )


def _of_day(function: str, expression: str) -> str:
    """An expression on the day, `d`."""
    return f"transform(array({_day(function)}), d -> {expression})[0]"


DAYS = _day("days")
MONTHS = _of_day("months", "(year(d) - 1970) * 12 + month(d) - 1")
YEARS = _of_day("years", "year(d) - 1970")
HOURS = (
    f"CASE typeof(x) WHEN 'timestamp' THEN {_periods(_HOUR)}"
    " WHEN 'timestamp_ntz' THEN unix_date(CAST(x AS DATE)) * 24 + hour(x)"
    f" ELSE {_refused(_TIME_EXPECTED.format('hours', 'timestamp'))} END"
)

# In truncate, `x` has the fields `width` and `value`. Values are cast through VARIANT, since that
# can be cast to any type, including the value's own.
_WIDTH = "CAST(x.width AS BIGINT)"
_TYPE = "typeof(x.value)"
_LARGEST = 2**63 - 1
# The scale of a decimal; 0 for other types. It is a constant, as types must be.
_SCALE = f"regexp_extract(concat({_TYPE}, ',0'), ',([0-9]+)', 1)"


def _value_as(type_name: str) -> str:
    return f"variant_get(CAST(x.value AS VARIANT), '$', {type_name})"


def _as_value(expression: str) -> str:
    """Casts an expression to the type of the value."""
    return f"variant_get(CAST({expression} AS VARIANT), '$', {_TYPE})"


def _truncated_integer() -> str:
    # Just above the type's minimum, the results wrap around, as Java's do.
    wrapped = f"{_LARGEST} - (r - (v & {_LARGEST}) - 1)"
    difference = f"coalesce(try_subtract(v, r), {wrapped})"
    bits = (
        f"CASE {_TYPE} WHEN 'tinyint' THEN 56 WHEN 'smallint' THEN 48 WHEN 'int' THEN 32 ELSE 0 END"
    )
    remainder = f"transform(array(pmod(v, {_WIDTH})), r -> {difference})[0]"
    whole = f"transform(array({_value_as(chr(39) + 'bigint' + chr(39))}), v -> {remainder})[0]"
    return _as_value(f"shiftright(shiftleft({whole}, {bits}), {bits})")


def _truncated_decimal() -> str:
    number = _value_as(f"concat('decimal(38,', {_SCALE}, ')')")
    # Casts to text may give an exponent.
    digits = f"translate(format_number({number}, CAST({_SCALE} AS INT)), ',.', '')"
    truncated = "CAST(u - pmod(u, CAST(x.width AS DECIMAL(38, 0))) AS DECIMAL(38, 0))"
    unscaled = f"transform(array(CAST({digits} AS DECIMAL(38, 0))), u -> {truncated})[0]"
    return _as_value(f"concat(CAST({unscaled} AS STRING), 'e-', {_SCALE})")


TRUNCATED = (
    "CASE WHEN typeof(x.width) NOT IN ('tinyint', 'smallint', 'int') THEN "
    + _refused(
        "'truncate: expected a tinyint, smallint or int as the width, not ', typeof(x.width)"
    )
    + f" WHEN {_TYPE} IN ('tinyint', 'smallint', 'int', 'bigint') THEN {_truncated_integer()}"
    f" WHEN {_TYPE} LIKE 'decimal%' THEN {_truncated_decimal()}"
    f" WHEN {_TYPE} LIKE 'string%' OR {_TYPE} = 'binary' THEN "
    f"{_as_value('substring(x.value, 1, x.width)')} ELSE "
    + _refused(
        f"'truncate cannot process ', {_TYPE}, "
        "': expected a tinyint, smallint, int, bigint, decimal, string or binary'"
    )
    + " END"
)
