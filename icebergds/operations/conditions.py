"""Parses conditions of statements, DataFrames and actions, to plan scans with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind, field_ids
from icebergds.expr.comparisons import compares_exactly, compares_own_types
from icebergds.expr.conditions import Conditions, Operator
from icebergds.expr.nodes import TRUE, Expr, InBuckets, Operation, map_leaves
from icebergds.expr.sql import (
    NameOf,
    as_written,
    column_parts,
    parse_condition,
    parse_filter,
)
from icebergds.spec.schema import Schema

Setting: TypeAlias = Callable[[str], str | None]
"""A setting of a Spark session by its name; None if it is not known."""

ESCAPED = "spark.sql.parser.escapedStringLiterals"
"""The session setting that makes backslashes in texts begin no escape sequences."""

_CONSECUTIVE = "spark.sql.legacy.consecutiveStringLiterals.enabled"
# Pieces of text that Spark reads differently if a setting is on, and the setting's default.
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
# Words that Spark treats as values, even if a column has the name.
_VALUES = frozenset(
    {"user", "session_user", "localtimestamp"}
    | {f"current_{what}" for what in ("date", "time", "timestamp", "timezone")}
    | {f"current_{what}" for what in ("user", "catalog", "database", "schema", "path")}
)
_ANSI = "spark.sql.ansi.enabled"
_CASE_SENSITIVE = "spark.sql.caseSensitive"
_DATES_AS_TEXT = "spark.sql.legacy.typeCoercion.datetimeToString.enabled"


def default_setting(name: str) -> None:
    """For use without a session: all settings have Spark's defaults."""


def plannable_condition(
    condition: object,
    schema: Schema,
    time_zone: str | None,
    setting: Setting,
    name_of: NameOf = as_written,
) -> Expr | None:
    """Parses a condition to plan scans with; None if only Spark evaluates it correctly.

    Depending on the session, Spark may read text differently than we do, and compare other values
    than those of columns. So a scan is planned only with conditions that mean the same to both.

    Args:
        condition: SQL text; anything else is left to Spark.
        schema: the table's.
        time_zone: the zone of timestamps without an offset.
        setting: looks up settings of the session that evaluates the condition.
        name_of: gives columns the names that they have in the table (`SqlTree`).
    """
    if not isinstance(condition, str):
        return None
    others: list[object] = []
    found = _plannable(condition, schema, time_zone, setting, name_of, others.append)
    return None if others else found


def plannable_part(
    condition: str, schema: Schema, time_zone: str | None, setting: Setting, name_of: NameOf
) -> Expr | None:
    """A filter that is true whenever a condition is; None if there is nothing to plan with.

    Arguments are those of `plannable_condition`.
    """
    found = _plannable(condition, schema, time_zone, setting, name_of, lambda _: None)
    return None if found == TRUE else found


def named_by(alias: str | None, other: str | None = None) -> NameOf:
    """Removes the name of the table in front of columns.

    Args:
        other: the name of other rows that a condition is about; None if there are none.
    """
    own, others = (None if name is None else name.lower() for name in (alias, other))

    def name_of(parts: tuple[str, ...]) -> tuple[str, ...]:
        qualifier = parts[0].lower() if len(parts) > 1 else None
        if qualifier is not None and qualifier == others:
            raise InvalidFilterError(f"{parts[-1]} is a column of {other}")
        return parts[1:] if qualifier is not None and qualifier == own else parts

    return name_of


def equal_names(condition: str) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The names of columns that a condition says are equal, with their qualifiers."""
    try:
        tree, root = parse_condition(condition)
    except InvalidFilterError:
        return
    for part in Conditions(tree).conjuncts(root):
        piece = tree.piece(part)
        if isinstance(piece, Operator) and piece.kind == Operation.EQ:
            one, other = (column_parts(side.unnest()) for side in piece.parts)
            if one is not None and other is not None and not _is_value(one) | _is_value(other):
                yield one, other


def _is_value(parts: tuple[str, ...]) -> bool:
    return len(parts) == 1 and parts[0].lower() in _VALUES


def _plannable(
    text: str,
    schema: Schema,
    time_zone: str | None,
    setting: Setting,
    name_of: NameOf,
    unknown: Callable[[object], None],
) -> Expr:
    def settle(parsed: Expr) -> Expr:
        if not means_the_same(parsed, schema, setting):
            raise InvalidFilterError("Spark may compare other values")
        return parsed

    try:
        tree, root = parse_condition(text, name_of=name_of)
        if is_read_by_setting(text, setting):
            raise InvalidFilterError("Spark may read other values")
    except InvalidFilterError:
        unknown(text)
        return TRUE
    return Conditions(tree, time_zone).at_least(root, settle, unknown)


def choosing_filter(where: str | Expr | None, schema: Schema, time_zone: str | None) -> Expr:
    """The bound filter by which an action chooses files: TRUE for all of them.

    Args:
        where: a condition as Spark SQL, or a filter that is bound already.
        schema: the table's.
        time_zone: the zone of timestamps without an offset.

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
    """Whether a setting makes Spark read literals or names of a text differently than we do."""
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
    return compares_the_same(parsed, schema, setting)


def compares_the_same(parsed: Expr, schema: Schema, setting: Setting) -> bool:
    """Whether Spark compares the same values as we do in a condition that binds to a schema."""
    if not compares_exactly(parsed, schema, case_sensitive=False):
        return False
    if compares_own_types(parsed, schema) or _is(setting, _ANSI, default=True):
        return True
    are_own = compares_own_types(parsed, schema, or_dates_as_text=True)
    return are_own and not _is(setting, _DATES_AS_TEXT)


def _is(setting: Setting, name: str, *, default: bool = False) -> bool:
    found = setting(name)
    return default if found is None else found.lower() == "true"
