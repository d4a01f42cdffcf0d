"""Parses the conditions of statements, DataFrames and actions that scans can be planned with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind, field_ids
from icebergds.expr.coercion import are_dates_as_text, compares_own_types
from icebergds.expr.nodes import TRUE, Expr, InBuckets, map_leaves
from icebergds.expr.rounding import compares_exactly
from icebergds.expr.sql import parse_filter
from icebergds.spec.schema import Schema

Setting: TypeAlias = Callable[[str], str | None]
"""A setting of a Spark session by its name; None if it is not known."""

ESCAPED = "spark.sql.parser.escapedStringLiterals"
"""The setting of a session by which backslashes in texts begin no escape sequences."""

_CONSECUTIVE = "spark.sql.legacy.consecutiveStringLiterals.enabled"
# Pieces of text that Spark reads in another way if a setting is on, and whether it is by default.
_READ_BY_SETTING = (
    ('"', "spark.sql.ansi.doubleQuotedIdentifiers", False),
    ("\\", ESCAPED, False),
    ("''", ESCAPED, False),
    ('""', ESCAPED, False),
    ("''", _CONSECUTIVE, False),
    ('""', _CONSECUTIVE, False),
    # Spark replaces ${name} by the value of a setting or an environment variable.
    ("${", "spark.sql.variable.substitute", True),
)
_ANSI = "spark.sql.ansi.enabled"
_CASE_SENSITIVE = "spark.sql.caseSensitive"
_DATES_AS_TEXT = "spark.sql.legacy.typeCoercion.datetimeToString.enabled"


def default_setting(name: str) -> None:
    """The setting of no session: all have Spark's defaults."""


def plannable_condition(
    condition: object, schema: Schema, time_zone: str | None, setting: Setting
) -> Expr | None:
    """Parses a condition to plan scans with; None if only Spark evaluates it correctly.

    Spark may read text in another way than we do, and compare other values than those of columns:
    both depend on the session. So a scan is planned only with what means the same to both.

    Args:
        condition: SQL text; anything else is left to Spark.
        schema: the table's.
        time_zone: of timestamps without an offset.
        setting: of the session that evaluates the condition.
    """
    if not isinstance(condition, str):
        return None
    try:
        parsed = parse_filter(condition, time_zone=time_zone)
    except InvalidFilterError:
        return None
    if is_read_by_setting(condition, setting):
        return None
    return parsed if means_the_same(parsed, schema, setting) else None


def choosing_filter(where: str | Expr | None, schema: Schema, time_zone: str | None) -> Expr:
    """The bound filter by which an action chooses files: TRUE for all of them.

    Args:
        where: a condition as Spark SQL, or a filter that is bound already.
        schema: the table's.
        time_zone: of timestamps without an offset.

    Raises:
        InvalidFilterError: the condition is not plain enough to plan with, or does not fit the
            schema; or the filter is not bound to it.
    """
    if where is None:
        return TRUE
    if not isinstance(where, str):
        _check_is_bound(where, schema)
        return where
    return bind(parse_filter(where, time_zone=time_zone), schema, case_sensitive=False)


def _check_is_bound(row_filter: Expr, schema: Schema) -> None:
    found: set[int] = set()

    def in_buckets(leaf: InBuckets) -> Expr:
        found.add(leaf.field_id)
        return TRUE

    try:
        found |= field_ids(map_leaves(row_filter, lambda leaf: leaf, in_buckets))
    except TypeError:
        raise InvalidFilterError(
            f"filter {row_filter} is not bound to the table's schema; write the condition as SQL"
        ) from None
    unknown = sorted(each for each in found if schema.find_field(each) is None)
    if unknown:
        raise InvalidFilterError(
            f"filter {row_filter} is bound to another schema: the table has no field {unknown[0]}"
        )


def is_read_by_setting(text: str, setting: Setting) -> bool:
    """Whether Spark reads literals or names of a text in another way than we do, by a setting."""
    return any(
        piece in text and _is(setting, name, default=default)
        for piece, name, default in _READ_BY_SETTING
    )


def means_the_same(parsed: Expr, schema: Schema, setting: Setting) -> bool:
    """Whether a condition binds to a schema, and Spark compares the same values as we do."""
    try:
        bind(parsed, schema, case_sensitive=_is(setting, _CASE_SENSITIVE))
    except InvalidFilterError:
        return False
    if not compares_exactly(parsed, schema, case_sensitive=False):
        return False
    return _is_compared_alike(parsed, schema, setting)


def _is_compared_alike(parsed: Expr, schema: Schema, setting: Setting) -> bool:
    if compares_own_types(parsed, schema):
        return True
    if _is(setting, _ANSI, default=True):
        return True
    return are_dates_as_text(parsed, schema) and not _is(setting, _DATES_AS_TEXT)


def _is(setting: Setting, name: str, *, default: bool = False) -> bool:
    found = setting(name)
    return default if found is None else found.lower() == "true"
