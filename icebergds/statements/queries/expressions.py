"""Writes conditions and values outside of queries as expressions for Spark to evaluate.

Their sub-queries read temporary views instead of our tables, because an expression cannot hold a
DataFrame.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.errors import PySparkException

from icebergds.errors import IcebergError, InvalidStatementError
from icebergds.expr.names import in_backticks
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.common_tables import CommonTables
from icebergds.statements.queries.naming import replace_qualifiers
from icebergds.statements.queries.query import replace_tables
from icebergds.statements.queries.references import Reference, find_references
from icebergds.statements.spark_sql import Arguments, Replacement
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.text.parameters import literal
from icebergds.statements.text.splice import spliced


@contextmanager
def open_expressions(
    scope: NameScope,
    arguments: Arguments,
    common: CommonTables,
    qualifiers: Mapping[tuple[str, ...], str],
) -> Iterator[Expressions]:
    """Opens the expressions of a statement; drops their views at the end of the block.

    Args:
        common: the common table expressions of the statement.
        qualifiers: replacements for qualifiers of columns, keyed by the qualifier in lower case.
    """
    expressions = Expressions(scope, arguments, common, qualifiers)
    try:
        yield expressions
    except (IcebergError, PySparkException) as error:
        _restore(error, expressions.views)
        raise
    finally:
        for name in expressions.views:
            scope.spark.catalog.dropTempView(name)


@dataclass(frozen=True, slots=True)
class Expressions:
    """Writes the expressions of one statement.

    Attributes:
        views: the temporary views that they read, mapped to what the user wrote.
    """

    scope: NameScope
    arguments: Arguments
    common: CommonTables
    qualifiers: Mapping[tuple[str, ...], str]
    views: dict[str, str] = field(default_factory=dict)

    def text(self, expression: Cursor, further: Sequence[Replacement] = ()) -> str:
        """An expression for Spark, as written except for names.

        Args:
            further: further replacements.

        Errors are those of `replace_tables`.
        """
        found = replace_tables(self.scope, expression, self.arguments, self.common.names)
        found += self._common(expression)
        found += self._named(expression)
        found += further
        taken = [each.span for each in found]
        # The same qualifier in a sub-query may refer to a table there: replace it in both.
        found += [
            each
            for each in (
                *replace_qualifiers(expression, self.qualifiers),
                *_comments(expression),
            )
            if not any(span.start < each.span.end and each.span.start < span.end for span in taken)
        ]
        found.sort(key=lambda each: each.span.start)
        return spliced(expression, map(partial(self._with_view, expression.statement), found))

    def _with_view(self, statement: str, replacement: Replacement) -> Replacement:
        """Replaces the DataFrame of a replacement with the name of a view."""
        if replacement.frame is None:
            return replacement
        name = f"icebergds_{uuid.uuid4().hex}"
        replacement.frame.createTempView(name)
        self.views[name] = replacement.span.of(statement)
        return Replacement(replacement.span, f"{name}{replacement.text}")

    def _common(self, expression: Cursor) -> list[Replacement]:
        """Replacements for names of common table expressions."""
        if not self.common.names:
            return []
        references = [
            each
            for each in find_references(expression)
            if len(each.name) == 1 and each.name[0].lower() in self.common.names
        ]
        statement = expression.statement
        return [each for found in references for each in self._of_common(statement, found)]

    def _of_common(self, statement: str, reference: Reference) -> list[Replacement]:
        [name] = reference.name
        frame = self.common.frame(self.scope, self.arguments, statement, name)
        span, at = reference.span, reference.suffix.alias_at
        if reference.suffix.alias is not None or not reference.can_have_alias:
            return [Replacement(span, "", frame)]
        alias = f" AS {in_backticks([name])}"
        if at == span.end:
            return [Replacement(span, alias, frame)]
        return [Replacement(span, "", frame), Replacement(Span(at, at), alias)]

    def _named(self, expression: Cursor) -> list[Replacement]:
        """Replacements for names in braces, whose values the user passed with the text."""
        given = self.arguments.named
        if not given:
            return []
        found = []
        tokens = expression.tokens
        for at in range(expression.at, expression.end):
            if not tokens[at].is_sign("{"):
                continue
            name = tokens[at + 1].text if at + 2 < expression.end else ""
            if name not in given or not tokens[at + 2].is_sign("}"):
                raise InvalidStatementError(
                    f"{expression.written}: expected {{name}} with the name of an argument "
                    f"({', '.join(given)})"
                )
            span = Span(tokens[at].start, tokens[at + 2].end)
            found.append(_given(span, given[name]))
        return found


def _restore(error: Exception, views: Mapping[str, str]) -> None:
    """Rewrites an error to name what the user wrote instead of our views."""

    def written(text: str) -> str:
        return _GENERATED.sub(lambda found: views.get(found["name"], found[0]), text)

    if error.args and isinstance(error.args[0], str):
        error.args = (written(error.args[0]), *error.args[1:])
    # PySpark keeps Spark's messages in the first, its own in the second.
    for attribute in ("_desc", "_message"):
        text = getattr(error, attribute, None)
        if isinstance(text, str):
            setattr(error, attribute, written(text))


_GENERATED = re.compile(r"(?P<name>icebergds_[0-9a-f]{32})(?: AS `(?:[^`]|``)*`)?")


def _comments(expression: Cursor) -> Iterator[Replacement]:
    """Removes comments, so that the planner can read the expression; keeps hints."""
    tokens = expression.tokens
    for at in range(expression.at + 1, expression.end):
        span = Span(tokens[at - 1].end, tokens[at].start)
        between = span.of(expression.statement).strip()
        if between and not between.startswith("/*+"):
            yield Replacement(span, " ")


def _given(span: Span, value: Any) -> Replacement:
    if hasattr(value, "sparkSession"):
        return Replacement(span, "", value)
    return Replacement(span, literal(value))
