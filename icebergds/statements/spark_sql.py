"""Runs SQL text in which DataFrames replace tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.spark.frame_names import named
from icebergds.spark.patches import own
from icebergds.spark.session import is_connect
from icebergds.spark.session_verbs import prepare_statement
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.user_text import Piece, Splicing

_FRAME = "icebergds_{}"


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a user passed with the text: values of parameters, and of names in braces."""

    parameters: Any = None
    named: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Replacement:
    """A part of a text, and what replaces it: text, or a DataFrame followed by text."""

    span: Span
    text: str = ""
    frame: DataFrame | None = None


def written(part: Cursor) -> Piece:
    """A part of a statement as it was written."""
    return Piece(part.written, part.span.start)


def spliced_pieces(part: Cursor, replacements: Sequence[Replacement]) -> list[Piece]:
    """A part of a statement, with replacements.

    Args:
        replacements: texts only, in order, without overlaps.
    """
    pieces: list[Piece] = []
    at = part.span.start
    for each in replacements:
        pieces.append(Piece(part.statement[at : each.span.start], at))
        pieces.append(Piece(each.text, each.span.start, is_users=False))
        at = each.span.end
    return [*pieces, Piece(part.statement[at : part.span.end], at)]


def spark_sql(spark: SparkSession, text: str, arguments: Arguments) -> DataFrame:
    """Runs a text as Spark's own `sql` does."""
    prepare_statement(spark, text)
    given = () if arguments.parameters is None else (arguments.parameters,)
    found: DataFrame = own(spark, "sql")(text, *given, **(arguments.named or {}))
    return found


def spliced_sql(
    spark: SparkSession,
    text: str,
    span: Span,
    replacements: Sequence[Replacement],
    arguments: Arguments,
) -> DataFrame:
    """Runs a part of a text, with text and DataFrames as replacements.

    Args:
        replacements: in order, without overlaps.
    """
    frames: list[DataFrame] = []
    pieces: list[Piece] = []
    at = span.start
    for each in replacements:
        pieces.append(Piece(text[at : each.span.start], at))
        if each.frame is not None:
            frames.append(each.frame)
            pieces.append(Piece(None, each.span.start, is_users=False))
        pieces.append(Piece(each.text, each.span.start, is_users=False))
        at = each.span.end
    pieces.append(Piece(text[at : span.end], at))
    given = Arguments(_remaining(text, replacements, arguments.parameters), arguments.named)
    try:
        if not frames or is_connect(spark):
            return _with_frames(spark, pieces, frames, given)
        with named(spark, frames) as names:
            return _with_names(spark, pieces, names, given)
    except AnalysisException as error:
        Splicing(text, tuple(pieces)).restore(error)
        raise


def _with_names(
    spark: SparkSession, pieces: Sequence[Piece], names: Sequence[str], arguments: Arguments
) -> DataFrame:
    """Runs a text that has names for its DataFrames."""
    left = iter(names)
    ran = "".join(next(left) if p.text is None else p.text for p in pieces)
    if arguments.named:
        _check_names(ran, arguments.named)
    return spark_sql(spark, ran, arguments)


def _with_frames(
    spark: SparkSession, pieces: Sequence[Piece], frames: Sequence[DataFrame], arguments: Arguments
) -> DataFrame:
    """Runs a text in which Spark replaces names in braces by DataFrames."""
    by_name = {_FRAME.format(number): frame for number, frame in enumerate(frames)}
    # Braces have a meaning once anything is passed by name, but the user's only if the user did so.
    kept = _with_plain_braces if frames and not arguments.named else str
    names = iter(by_name)
    ran = "".join(f"{{{next(names)}}}" if p.text is None else kept(p.text) for p in pieces)
    if arguments.named:
        _check_names(ran, arguments.named, by_name)
    values = {**(arguments.named or {}), **by_name}
    return spark_sql(spark, ran, Arguments(arguments.parameters, values))


def _remaining(text: str, replacements: Sequence[Replacement], parameters: Any) -> Any:
    """The values of the parameters `?` outside of the replaced parts."""
    gone = [each.span for each in replacements if "?" in each.span.of(text)]
    if not gone or not isinstance(parameters, Sequence):
        return parameters
    markers = [token.start for token in sql_tokens(text) or () if token.is_sign("?")]
    return [
        value
        for at, value in enumerate(parameters)
        if at >= len(markers) or not any(span.start <= markers[at] < span.end for span in gone)
    ]


def _with_plain_braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _check_names(text: str, named: Mapping[str, Any], others: Collection[str] = ()) -> None:
    """Raises InvalidStatementError for names in braces without a value.

    PySpark would leave its temporary views behind.
    """
    try:
        fields = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise InvalidStatementError(f"{text[:200]}: {error}; write {{{{ for a brace") from None
    for name in fields:
        first = re.split(r"[.\[]", name)[0]
        if first not in named and first not in others:
            shown = ", ".join(named)
            raise InvalidStatementError(
                f"{{{name}}} has no value (there are {shown}); write {{{{ for a brace"
            )
