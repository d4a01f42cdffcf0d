"""Derives a filter on the table from the condition of a merge, for planning and conflict checks.

It uses the parts of the condition that name only the table. If the table is partitioned by
columns that must equal source columns, it also uses the values of these source columns, so that
only their partitions are read and checked for conflicts. The rows of a large table that no source
row can match are dropped before the merge shuffles the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, functions as f, types as spark

from icebergds.expr.names import in_backticks, quote_name, split_name
from icebergds.expr.nodes import FALSE, TRUE, Expr, Operation, Predicate, and_, or_
from icebergds.operations.conditions import equal_names, means_the_same
from icebergds.spark.job_descriptions import phase
from icebergds.spark.jvm import Private, is_broadcast, with_new_attributes, with_private
from icebergds.spark.row_level.column_conditions import as_text, join_filter
from icebergds.spark.row_level.rows import StatementRows
from icebergds.spark.row_level.target import Target
from icebergds.spark.session import is_connect, session_setting
from icebergds.spark.types import spark_schema
from icebergds.spec.transforms import VoidTransform

# Up to this many values are listed in an IN; more become a range.
_FEW = 200
_WHOLE_NUMBERS = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_LOG = logging.getLogger(__name__)

# Shuffling fewer rows takes less time than computing the source ahead.
_LEAST_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of a merge.

    Attributes:
        source: the source rows.
        source_alias, target_alias: the names of the two sides.
        joined: an inner join by the condition of an empty table, on the left, and the source.
    """

    target: Target
    source: DataFrame
    source_alias: str
    target_alias: str
    joined: DataFrame


@dataclass(frozen=True, slots=True)
class EqualColumns:
    """The names of two columns that are equal in matching rows, without the sides' aliases."""

    of_target: str
    of_source: str


def match_filter(sides: Sides, on: Any, by_source: Sequence[Any]) -> tuple[Expr | None, DataFrame]:
    """Derives a condition on only the table that is true for all rows that the merge may change.

    Args:
        on: SQL, a column, or names of columns.
        by_source: the conditions of clauses for rows not matched by the source; None for a clause
            without a condition.

    Returns:
        The condition (None for all rows), and the source with checks that its rows satisfy the
        condition each time it is computed.
    """
    if sides.target.snapshot() is None:
        return None, sides.source
    others: list[Expr] = []
    for condition in by_source:
        other = _of_target_alone(sides, condition)
        if other is None:
            return None, sides.source
        others.append(other)
    parts, pairs = _parts(sides, on)
    source = sides.source
    for pair in pairs:
        bounds = _bounds(sides, pair)
        if bounds is not None and _is_alike(sides.target, bounds.of_target):
            parts.append(bounds.of_target)
            source = source.where(bounds.of_source)
    if not parts:
        return None, source
    return or_(and_(*parts), *others), source


def equal_columns(sides: Sides, on: Any) -> list[EqualColumns]:
    """The pairs of columns that are equal in all matching rows, as far as the text shows."""
    return _parts(sides, on)[1]


def _parts(sides: Sides, on: Any) -> tuple[list[Expr], list[EqualColumns]]:
    """The conditions that name only the table, and the pairs of equal columns."""
    if isinstance(on, list | tuple):
        return [], [EqualColumns(name, name) for name in on]
    target = sides.target
    on = as_text(target.spark, on)
    if not isinstance(on, str):
        aliases = sides.target_alias, sides.source_alias
        known = join_filter(target.spark, on, target.schema, sides.joined, aliases)
        equal = [_pair(sides, *names) for names in known.equal]
        alone = [] if known.of_target == TRUE else [known.of_target]
        return alone, [pair for pair in equal if pair is not None]
    pairs = [_pair(sides, *names) for names in equal_names(on)]
    part = _of_target_alone(sides, on)
    return [] if part is None else [part], [pair for pair in pairs if pair is not None]


def _of_target_alone(sides: Sides, condition: Any) -> Expr | None:
    """The part of a condition that names only the table; None if unusable for planning scans."""
    target = replace(sides.target, alias=sides.target_alias)
    return target.plannable_part(condition, sides.source_alias)


def _is_alike(target: Target, condition: Expr) -> bool:
    return means_the_same(condition, target.schema, session_setting(target.spark))


def _pair(sides: Sides, one: tuple[str, ...], other: tuple[str, ...]) -> EqualColumns | None:
    for left, right in ((one, other), (other, one)):
        of_target = _own(left, sides.target_alias, _names(spark_schema(sides.target.schema)))
        of_source = _own(right, sides.source_alias, _names(sides.source.schema))
        if of_target is not None and of_source is not None:
            named = [name.lower() for name in sides.source.columns]
            # A Column may be one of several with the same name.
            is_one = named.count(split_name(of_source)[0].lower()) == 1
            return EqualColumns(of_target, of_source) if is_one else None
    return None


def _own(name: tuple[str, ...], alias: str, columns: set[str]) -> str | None:
    """A column name without the alias of its side; None if it is not a column of this side."""
    if len(name) > 1 and name[0].lower() == alias.lower():
        # Otherwise it is a field of a struct whose name equals the alias.
        return quote_name(name[1:]) if name[1].lower() in columns else None
    return quote_name(name) if len(name) == 1 and name[0].lower() in columns else None


def _names(schema: spark.StructType) -> set[str]:
    return {name.lower() for name in schema.names}


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds on a column of the source.

    Attributes:
        of_target: the condition that matched rows of the table satisfy.
        of_source: fails on source rows that do not, in case a later computation of the source
            gives other values.
    """

    of_target: Expr
    of_source: Column


def _bounds(sides: Sides, pair: EqualColumns) -> _Bounds | None:
    """The source's values for a column that the table is partitioned by; None if not usable."""
    if not _is_partitioned_by(sides.target, pair.of_target):
        return None
    types = [
        _type_of(spark_schema(sides.target.schema), pair.of_target),
        _type_of(sides.source.schema, pair.of_source),
    ]
    if not _are_comparable(types):
        return None
    column = f.col(pair.of_source)
    found = sides.source.select(column.alias("v")).where("v IS NOT NULL").distinct()
    with phase("find partitions of the source"):
        values = [row[0] for row in found.limit(_FEW + 1).collect()]
    if not values:
        return _Bounds(FALSE, _checked(column.isNull(), pair))
    if len(values) <= _FEW:
        of_target: Expr = Predicate(Operation.IN, pair.of_target, tuple(values))
        return _Bounds(of_target, _checked(column.isNull() | column.isin(values), pair))
    with phase("find partitions of the source"):
        least, greatest = found.agg(f.min("v"), f.max("v")).collect()[0]
    of_target = and_(
        Predicate(Operation.GT_EQ, pair.of_target, (least,)),
        Predicate(Operation.LT_EQ, pair.of_target, (greatest,)),
    )
    return _Bounds(of_target, _checked(column.isNull() | column.between(least, greatest), pair))


def _is_partitioned_by(target: Target, name: str) -> bool:
    schema = target.schema
    parts = tuple(part.lower() for part in split_name(name))
    return any(
        tuple(part.lower() for part in schema.paths_by_id.get(source, ())) == parts
        for field in target.state.metadata.spec().fields
        if not isinstance(field.transform, VoidTransform)
        for source in field.source_ids
    )


def _type_of(schema: spark.StructType, name: str) -> spark.DataType | None:
    found: spark.DataType = schema
    for part in split_name(name):
        if not isinstance(found, spark.StructType):
            return None
        types = {field.name.lower(): field.dataType for field in found.fields}
        if part.lower() not in types:
            return None
        found = types[part.lower()]
    return found


def _are_comparable(types: Iterable[spark.DataType | None]) -> bool:
    """Whether Spark compares values of these types without a cast that changes them."""
    kinds = list(types)
    if all(isinstance(kind, _WHOLE_NUMBERS) for kind in kinds):
        return True
    names = {None if kind is None else kind.simpleString() for kind in kinds}
    return names in ({"string"}, {"date"})


def _checked(holds: Column, pair: EqualColumns) -> Column:
    message = (
        f"merge: the source has different values of {pair.of_source} each time it is computed; "
        "cache it, or write it to a table first"
    )
    # In a join, Spark applies a deterministic condition on a column to the equal column, too, and
    # would check rows of the table as well.
    always = f.spark_partition_id() >= 0
    error = f.raise_error(f.lit(message)).cast("boolean")
    return f.when(holds & always, f.lit(True)).otherwise(error)


def only_matching(sides: Sides, on: object, rows: StatementRows) -> tuple[DataFrame, DataFrame]:
    """Drops rows of the table that match no source row, if the keys of the source are few.

    Otherwise Spark shuffles both sides of a join that keeps all rows of a small side.

    Args:
        on: SQL, a column, or names of columns.

    Returns:
        The rows of the table, and the source, which is computed once: if a second computation gave
        other keys, matching rows would seem to be new.
    """
    spark = sides.target.spark
    count = sum(file.entry.data_file.record_count for file in rows.files)
    pairs = equal_columns(sides, on)
    if is_connect(spark) or count < _LEAST_ROWS or not pairs:
        return rows.frame, sides.source
    wanted = list(dict.fromkeys(in_backticks(split_name(pair.of_source)[:1]) for pair in pairs))
    keys = sides.source.select(*wanted)
    if not with_private(Private.MERGES, lambda: is_broadcast(spark, keys), lambda: False):
        return rows.frame, sides.source
    try:
        source = sides.source.localCheckpoint()
    except PySparkException as error:
        _LOG.info("the source of a merge cannot be kept: %s", str(error).partition("\n")[0])
        return rows.frame, sides.source
    are_equal = f.lit(True)
    for pair in pairs:
        of_target = in_backticks((sides.target_alias, *split_name(pair.of_target)))
        of_source = in_backticks((sides.source_alias, *split_name(pair.of_source)))
        are_equal = are_equal & (f.col(of_target) == f.col(of_source))
    # Clauses may use columns of the source, which must be in the plan once.
    fresh = with_private(Private.MERGES, lambda: with_new_attributes(spark, source), lambda: None)
    if fresh is None:
        return rows.frame, source
    keys = fresh.select(*wanted).alias(sides.source_alias)
    return rows.frame.alias(sides.target_alias).join(keys, are_equal, "left_semi"), source
