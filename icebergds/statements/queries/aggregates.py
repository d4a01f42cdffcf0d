"""Finds the SELECTs whose aggregates metadata may answer.

They read one table and ask for counts, least and greatest values, alone or by columns, under a
condition that is understood exactly. All others are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icebergds.expr.sql import column_parts, term_of
from icebergds.expr.sql_tokens import Token, TokenKind
from icebergds.operations.read.aggregates import Aggregate, Asked, Function, GroupKey
from icebergds.spec.types import NestedField
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.analysis import QueryAnalysis
from icebergds.statements.queries.derived import selects_of
from icebergds.statements.queries.joins import is_plain, relations_of
from icebergds.statements.queries.needed import (
    AggregateCall,
    AggregateQuery,
    DistinctCall,
    UnnamedItem,
)
from icebergds.statements.text.cursor import Cursor, Span

# A node of sqlglot's tree.
_Node = Any


def aggregate_queries(
    tree: _Node, analysis: QueryAnalysis, query: Cursor
) -> Mapping[int, AggregateQuery]:
    """The SELECTs of a query whose aggregates metadata may answer, by the number of the table."""
    found = {}
    for select in selects_of(tree):
        numbers = analysis.numbers(select)
        if len(numbers) == 1 and numbers[0] is not None and is_plain(select):
            asked = _Reader(select, analysis, query).aggregates(numbers[0])
            if asked is not None:
                found[numbers[0]] = asked
    return found


# Parts of a SELECT.
_PARTS = frozenset(
    {"expressions", "from_", "from", "where", "group", "having", "order", "limit", "offset"}
    | {"distinct", "with_", "with"}
)
# What may stand around aggregates and keys: functions of rows whose arguments are looked at.
_AROUND = frozenset(
    """
    alias paren identifier literal boolean null add sub mul div mod neg and or not eq neq gt gte lt
    lte is between in case if coalesce cast datatype datatypeparam abs round ceil floor ordered
    having order group
    """.split()  # noqa: SIM905
)
_FUNCTIONS = {each.value.upper(): each for each in Function}
_AFTER_WHERE = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET")
_ENDS = ("UNION", "INTERSECT", "EXCEPT", "MINUS")


class _Unreadable(Exception):  # noqa: N818
    """A SELECT is not understood."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads a SELECT of one table of ours."""

    select: _Node
    analysis: QueryAnalysis
    query: Cursor

    def aggregates(self, number: int) -> AggregateQuery | None:
        relation = self.analysis.relations[number]
        source = relation.source
        if not isinstance(source, NamedTable) or source.metadata_table is not None:
            return None
        if relation.schema is None or relation.reference.suffix.is_sampled:
            return None
        parts = {name for name, value in self.select.args.items() if value}
        if not parts <= _PARTS or relations_of(self.select)[0].args.get("joins"):
            return None
        try:
            return self._read(number)
        except _Unreadable:
            return None

    def _read(self, number: int) -> AggregateQuery | None:
        block = self._block(number)
        keys = self._keys()
        calls = list(self._calls(block))
        items = block.items()
        listed = self.select.expressions
        if len(items) != len(listed):
            return None
        count = sum(self._check(item.unalias(), keys) for item in listed)
        count += sum(self._check(part, keys) for part in self._after())
        if count != len(calls):
            return None
        distinct = [each for each in calls if isinstance(each, DistinctCall)]
        grouped = [
            *(GroupKey(*key) for key in keys.values()),
            *(GroupKey(each.column) for each in distinct),
        ]
        is_grouped = bool(self.select.args.get("group") or self.select.args.get("distinct"))
        if not is_grouped and (self.select.args.get("having") or self.select.args.get("order")):
            return None
        if not calls and not grouped:
            return None
        condition = self.analysis.exact_condition(self.select)
        if condition is None:
            return None
        asked = [each for each in calls if isinstance(each, AggregateCall)]
        unnamed = []
        for item, node in zip(items, listed, strict=True):
            within = [each for each in calls if each.span.is_within(item.span)]
            if within and not node.alias:
                unnamed.append(self._unnamed(item, within))
        return AggregateQuery(
            Asked(
                condition,
                tuple(each.aggregate for each in asked),
                tuple(dict.fromkeys(grouped)),
                self.analysis.time_zone,
            ),
            tuple(asked),
            tuple(distinct),
            is_grouped,
            tuple(unnamed),
            self.query.statement,
            block.where,
            block.end,
        )

    def _block(self, number: int) -> _Block:
        """Where the clauses of the SELECT are."""
        reference = self.analysis.relations[number].reference
        tokens, query = self.query.tokens, self.query
        named = next(at for at in range(query.at, query.end) if tokens[at].start == reference.start)
        if named == query.at or not tokens[named - 1].is_word("FROM"):
            raise _Unreadable
        first, depth = named - 2, 0
        while first >= query.at:
            token = tokens[first]
            depth += token.is_sign(")") - token.is_sign("(")
            if depth < 0:
                raise _Unreadable
            if depth == 0 and token.is_word("SELECT"):
                break
            first -= 1
        else:
            raise _Unreadable
        listed = first + 1
        if tokens[listed].is_word("DISTINCT"):
            listed += 1
        elif tokens[listed].is_word("ALL"):
            raise _Unreadable
        end = named
        clauses: dict[str, int] = {}
        depth = 0
        while end < query.end:
            token = tokens[end]
            depth += token.is_sign("(") - token.is_sign(")")
            if depth < 0 or (depth == 0 and token.is_word(*_ENDS)):
                break
            if depth == 0 and token.is_word("WHERE", *_AFTER_WHERE):
                clauses.setdefault(token.keyword, end)
            end += 1
        if any(token.is_sign(";") for token in tokens[first:end]):
            raise _Unreadable
        after = min([at for word, at in clauses.items() if word != "WHERE"], default=end)
        where = clauses.get("WHERE", after)
        if where > after:
            raise _Unreadable
        return _Block(query, listed, named - 1, where, after, end)

    def _keys(self) -> dict[_Node, tuple[NestedField, Any]]:
        """What the SELECT groups by, as sqlglot writes it, with the column and its term."""
        group = self.select.args.get("group")
        listed = self.select.expressions
        if group is None:
            if not self.select.args.get("distinct"):
                return {}
            if self.select.args["distinct"].args.get("on"):
                raise _Unreadable
            return {node: self._key(node) for node in (item.unalias() for item in listed)}
        if self.select.args.get("distinct"):
            raise _Unreadable
        if any(value for name, value in group.args.items() if name != "expressions"):
            raise _Unreadable
        found = {}
        for node in group.expressions:
            if node.key == "literal":
                if not node.is_int or not 1 <= int(node.this) <= len(listed):
                    raise _Unreadable
                node = listed[int(node.this) - 1].unalias()
            elif self._column(node) is None and (named := self._named(node)) is not None:
                node = named
            found[node] = self._key(node)
        if not found:
            raise _Unreadable
        return found

    def _key(self, node: _Node) -> tuple[NestedField, Any]:
        found = term_of(node)
        if found is None:
            raise _Unreadable
        parts, term = found
        column = self.analysis.own_column(self.select, parts)
        if column is None or (term is not None and not term.is_local):
            raise _Unreadable
        return column, term

    def _column(self, node: _Node) -> NestedField | None:
        parts = column_parts(node)
        return None if parts is None else self.analysis.own_column(self.select, parts)

    def _named(self, node: _Node) -> _Node | None:
        """The item of the SELECT whose alias a name is, if no column has that name."""
        parts = column_parts(node)
        if parts is None or len(parts) != 1:
            return None
        named = [item for item in self.select.expressions if item.alias.lower() == parts[0].lower()]
        return named[0].unalias() if len(named) == 1 else None

    def _is_alias(self, node: _Node) -> bool:
        """Whether a name in HAVING or ORDER BY is an alias of an item."""
        from sqlglot.expressions import Having, Order

        return self._named(node) is not None and node.find_ancestor(Having, Order) is not None

    def _after(self) -> Iterator[_Node]:
        for name in ("having", "order"):
            if (node := self.select.args.get(name)) is not None:
                yield node

    def _check(self, node: _Node, keys: Mapping[_Node, Any]) -> int:
        """The number of calls of aggregate functions in an expression.

        Raises `_Unreadable` if it has anything else that depends on rows but keys.
        """
        if node in keys:
            return 0
        if node.key in ("count", "min", "max"):
            return 1
        if node.key == "column":
            column = self._column(node)
            is_key = (column, None) in keys.values()
            if not is_key and (column is not None or not self._is_alias(node)):
                raise _Unreadable
            return 0
        if node.key not in _AROUND or node.args.get("query") is not None:
            raise _Unreadable
        return sum(self._check(child, keys) for child in node.iter_expressions())

    def _calls(self, block: _Block) -> Iterator[AggregateCall | DistinctCall]:
        """The calls of aggregate functions, from the tokens."""
        tokens = self.query.tokens
        for start, end in ((block.listed, block.from_at), (block.after, block.end_at)):
            for at in range(start, end - 1):
                token = tokens[at]
                if not token.is_word(*_FUNCTIONS) or not tokens[at + 1].is_sign("("):
                    continue
                if at > start and tokens[at - 1].is_sign("."):
                    raise _Unreadable
                within = Cursor(self.query.statement, tokens, at + 1, end).group()
                function = _FUNCTIONS[token.keyword]
                span = Span(token.start, tokens[within.end].end)
                yield self._call(function, within, span)

    def _call(self, function: Function, within: Cursor, span: Span) -> AggregateCall | DistinctCall:
        tokens = within.tokens[within.at : within.end]
        if function is Function.COUNT and len(tokens) == 1 and _is_constant(tokens[0]):
            # Spark counts ones for a star.
            counted = "1" if tokens[0].is_sign("*") else tokens[0].text
            return AggregateCall(Aggregate(function), span, f"count({counted})")
        is_distinct = function is Function.COUNT and within.take("DISTINCT")
        if within.is_done or not tokens[-1].is_identifier:
            raise _Unreadable
        name = within.name()
        column = self.analysis.own_column(self.select, name)
        if column is None or not within.is_done:
            raise _Unreadable
        if is_distinct:
            return DistinctCall(column, span, f"count(DISTINCT {name[-1]})")
        return AggregateCall(Aggregate(function, column), span, f"{function}({name[-1]})")

    def _unnamed(self, item: Cursor, within: Sequence[AggregateCall | DistinctCall]) -> UnnamedItem:
        [first, *others] = within
        if first.span == item.span and not others:
            return UnnamedItem(item.span, first.name)
        if any(token.is_sign(".", "?", ":", "{") for token in item.tokens[item.at : item.end]):
            raise _Unreadable
        return UnnamedItem(item.span, None)


@dataclass(frozen=True, slots=True)
class _Block:
    """Where the clauses of a SELECT are, as positions among the tokens of its query.

    Attributes:
        listed: the first item.
        where_at: WHERE, or what follows.
        after: what follows WHERE.
        end_at: the end of the SELECT.
    """

    query: Cursor
    listed: int
    from_at: int
    where_at: int
    after: int
    end_at: int

    @property
    def where(self) -> Span | None:
        """The WHERE clause, with the space before it."""
        if self.where_at == self.after:
            return None
        return Span(self.query.tokens[self.where_at - 1].end, self.end)

    @property
    def end(self) -> int:
        """Where the FROM and WHERE clauses end in the text."""
        return self.query.tokens[self.after - 1].end

    def items(self) -> list[Cursor]:
        """The items of the SELECT."""
        listed = self.query.part(self.listed, self.from_at)
        return listed.items()


def _is_constant(token: Token) -> bool:
    return token.is_sign("*") or (token.kind is TokenKind.NUMBER and token.text.isdecimal())
