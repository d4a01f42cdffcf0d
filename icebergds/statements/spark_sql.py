"""Gives Spark a text in which DataFrames stand for tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icebergds.statements.text.cursor import Span

OWN = "_icebergds_spark_sql"
"""Spark's own method `sql` of a session whose method is ours."""

_FRAME = "icebergds_{}"


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a user gave beside the text: values of parameters, and what braces stand for."""

    parameters: Any = None
    named: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Replacement:
    """A part of a text, and what takes its place: text, or a DataFrame and text behind it."""

    span: Span
    text: str = ""
    frame: DataFrame | None = None


def spark_sql(spark: SparkSession, text: str, arguments: Arguments) -> DataFrame:
    """Runs a text as Spark's own `sql` does."""
    sql = getattr(spark, OWN, None) or spark.sql
    given = () if arguments.parameters is None else (arguments.parameters,)
    found: DataFrame = sql(text, *given, **(arguments.named or {}))
    return found


def spliced_sql(
    spark: SparkSession,
    text: str,
    span: Span,
    replacements: Sequence[Replacement],
    arguments: Arguments,
) -> DataFrame:
    """Runs a part of a text in which other text and DataFrames stand in some places.

    Args:
        replacements: in their order; they do not overlap.
    """
    frames: dict[str, Any] = {}
    pieces: list[str] = []
    at = span.start
    # Only with arguments of the user's do braces in the text have a meaning.
    kept = _as_is if arguments.named else _with_plain_braces
    has_frames = any(each.frame is not None for each in replacements)
    if not has_frames and not arguments.named:
        kept = _as_is
    for each in replacements:
        pieces.append(kept(text[at : each.span.start]))
        if each.frame is not None:
            name = _FRAME.format(len(frames))
            frames[name] = each.frame
            pieces.append(f"{{{name}}}")
        pieces.append(kept(each.text))
        at = each.span.end
    pieces.append(kept(text[at : span.end]))
    named = {**(arguments.named or {}), **frames}
    return spark_sql(spark, "".join(pieces), Arguments(arguments.parameters, named))


def _as_is(text: str) -> str:
    return text


def _with_plain_braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
