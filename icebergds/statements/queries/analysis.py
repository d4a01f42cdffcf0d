"""Finds what the SELECTs of a query say about the rows of our tables (`QueryAnalysis`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any, TypeAlias

from icebergds.errors import IcebergError
from icebergds.expr.bind import bind
from icebergds.expr.conditions import UNREADABLE, Conditions
from icebergds.expr.names import quote_name, resolve
from icebergds.expr.nodes import TRUE, Expr, and_, relaxed
from icebergds.expr.sql import SqlTree, Transforms, column_parts
from icebergds.expr.sql_text import sql_text
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.expr.terms import term_type
from icebergds.operations.conditions import Setting, means_the_same
from icebergds.spec.types import IcebergType, NestedField
from icebergds.statements.queries.carried import (
    Carrier,
    Condition,
    Reader,
    lets_conditions_in,
    same_column,
)
from icebergds.statements.queries.conditions import (
    Names,
    Source,
    conjuncts_of,
    is_true_for_nulls,
    said_by,
)
from icebergds.statements.queries.derived import DerivedQueries
from icebergds.statements.queries.joins import (
    Deciding,
    deciding_conditions,
    is_plain,
    joined_names,
    lateral_views,
    relations_of,
)
from icebergds.statements.queries.needed import ViewNeeded
from icebergds.statements.queries.outline import Outline, outline_of
from icebergds.statements.queries.outputs import (
    Output,
    Term,
    by_name,
    given_names,
    keys_of,
    unwrapped,
    with_names,
)
from icebergds.statements.queries.relations import Relation
from icebergds.statements.text.cursor import Cursor

# A node of sqlglot's tree.
_Node = Any

Path: TypeAlias = tuple[str, ...]
"""A column, or a field nested in one."""


@dataclass(frozen=True, slots=True)
class Equality:
    """Only rows whose column equals some value of another relation's column matter.

    Attributes:
        number, column: the relation whose rows matter, and its column.
        by, by_column: the other relation, and its column.
    """

    number: int
    column: Path
    by: int
    by_column: Path


@dataclass(frozen=True)
class QueryAnalysis:
    """What the SELECTs of a query say about our relations, which are identified by number.

    Attributes:
        tree: sqlglot's tree of the outline.
    """

    relations: Sequence[Relation]
    tree: _Node
    outline: Outline
    setting: Setting
    time_zone: str | None
    now: datetime

    def numbers(self, select: _Node) -> list[int | None]:
        """The number of each relation of a SELECT; None for relations that are not ours."""
        found = self._numbers_found
        if id(select) not in found:
            found[id(select)] = self._numbers(relations_of(select))
        return found[id(select)]

    def carry_conditions(self, needed: ViewNeeded | None) -> None:
        """Adds conditions on the results of inner queries to those queries.

        Args:
            needed: of the query's own result, if the query is a view's.
        """
        carrier = Carrier(self._derived, self._names_of, self._type_of)
        if needed is not None and needed.condition != TRUE:
            self._add_needed(carrier, needed)
        carrier.carry()

    def named(self, select: _Node, numbers: Sequence[int | None]) -> set[int]:
        """Our relations whose columns the query does not rename."""
        return {
            number
            for node, number in zip(relations_of(select), numbers, strict=True)
            if number is not None and not given_names(node)
        }

    def conditions(self, select: _Node, numbers: Sequence[int | None]) -> dict[int, Expr]:
        """For each of our relations, a condition that is true for all rows that a SELECT needs."""
        names = self._names_of(select)
        found: dict[int, Expr] = {}
        for deciding in deciding_conditions(select):
            said: dict[int, Expr] = {}
            for part in conjuncts_of(deciding.node):
                for at in names.owners(part, deciding.visible) & deciding.decided:
                    number = numbers[at]
                    if number is not None and not self._is_sampled(number):
                        name_of = names.column_of(at, deciding.visible)
                        said[at] = and_(said.get(at, TRUE), self._read(part, number, name_of))
            for at, condition in said.items():
                number = numbers[at]
                if number is None or (at in deciding.nullable and is_true_for_nulls(condition)):
                    continue
                found[number] = and_(found.get(number, TRUE), condition)
        return found

    def exact_condition(self, select: _Node) -> Expr | None:
        """The condition of a SELECT of one relation, bound to that relation's schema.

        Returns:
            None if another condition is needed to say which rows the SELECT chooses.
        """
        [number] = self.numbers(select)
        where = select.args.get("where")
        schema = None if number is None else self.relations[number].schema
        if schema is None:
            return None
        if where is None:
            return TRUE
        assert number is not None
        name_of = self._names_of(select).column_of(0, 1)
        tree = SqlTree(self.outline.literals, name_of, Transforms.QUALIFIED)
        try:
            parsed = Conditions(tree, self.time_zone).exact(where.this)
            if not self._means_the_same(number, parsed):
                return None
            found = bind(parsed, schema, case_sensitive=self._is_case_sensitive)
        except UNREADABLE:
            return None
        return found if relaxed(found) == found else None

    def own_column(self, select: _Node, parts: Sequence[str]) -> NestedField | None:
        """The column that a name refers to in a SELECT of one relation; None for other names."""
        [number] = self.numbers(select)
        schema = None if number is None else self.relations[number].schema
        found = self._names_of(select).resolved(tuple(parts), 1)
        if schema is None or found is None or len(found[1]) != 1:
            return None
        [name] = found[1]
        columns = [each for each in schema.fields if each.name.lower() == name.lower()]
        if len(columns) != 1 or (self._is_case_sensitive and columns[0].name != name):
            return None
        return columns[0]

    def equalities(self, select: _Node) -> Iterator[Equality]:
        """Columns of relations that must be equal to columns of other relations."""
        names = self._names_of(select)
        for deciding in deciding_conditions(select):
            for conjunct in conjuncts_of(deciding.node):
                for at, path, by in self._equal(conjunct, names, select, deciding):
                    found = self._column(select, at, path, is_chosen=True)
                    if at in deciding.decided and found is not None:
                        yield Equality(*found, *by)

    def _equal(
        self, node: _Node, names: Names, select: _Node, deciding: Deciding
    ) -> Iterator[tuple[int, Path, tuple[int, Path]]]:
        """Columns of the SELECT's relations, by position, with columns of ours that they equal."""
        if node.key == "eq":
            left, right = (
                names.owner(side, deciding.visible) for side in (node.this, node.expression)
            )
            if left is None or right is None or left[0] == right[0]:
                return
            for (at, path), (by, by_path) in ((left, right), (right, left)):
                found = self._column(select, by, by_path)
                # A name hidden here resolves in an outer SELECT.
                if found is not None and by not in deciding.hidden:
                    yield at, path, found
        elif node.key == "in" and (query := node.args.get("query")) is not None:
            left, found = names.owner(node.this, deciding.visible), self._chosen(query.this)
            if left is not None and found is not None:
                yield *left, found
        elif node.key == "exists":
            yield from self._equal_within(node.this, names, deciding)

    def _equal_within(
        self, query: _Node, names: Names, deciding: Deciding
    ) -> Iterator[tuple[int, Path, tuple[int, Path]]]:
        """What `_equal` finds in the conditions of a sub-query that must have a row."""
        if not _has_a_row_for_each(query):
            return
        [number] = self.numbers(query)
        if number is None:
            return
        within = self._names_of(query)
        for conjunct in conjuncts_of(query.args["where"].this):
            if conjunct.key != "eq":
                continue
            sides = (conjunct.this, conjunct.expression)
            for inner, outer in (sides, sides[::-1]):
                # A name of the sub-query's table hides those of outer ones.
                own, other = within.owner(inner, 1), names.owner(outer, deciding.visible)
                if own is None or other is None or within.owner(outer, 1) is not None:
                    continue
                found = self._column(query, *own)
                if found is not None:
                    yield *other, found

    def _chosen(self, select: _Node) -> tuple[int, Path] | None:
        """The relation and column that a sub-query selects, if it reads one table."""
        if select.key != "select" or len(select.expressions) != 1 or not is_plain(select):
            return None
        if len(relations_of(select)) != 1 or select.args.get("laterals"):
            return None
        found = self._names_of(select).owner(select.expressions[0].unalias(), 1)
        return None if found is None else self._column(select, *found)

    def _column(
        self, select: _Node, at: int, path: Path, *, is_chosen: bool = False
    ) -> tuple[int, Path] | None:
        """The column of ours that contains all values of a column of a SELECT's relation.

        Args:
            at: the position of the relation in the SELECT.
            is_chosen: only if rows of ours with other values cannot affect the result.
        """
        number = self.numbers(select)[at]
        if number is not None:
            return number, path
        within = self._within(relations_of(select)[at], path)
        if within is None or within[1].of_column:
            return None
        query, term = within
        names = self._names_of(query)
        if is_chosen:
            same = partial(same_column, names)
            if self._uses.get(id(query)) != 1 or not lets_conditions_in(query):
                return None
            outputs = self._derived.outputs(query) or ()
            keys = [outputs[key].term for key in keys_of(query, outputs, same)]
            if not any(key is not None and same(key) == same(term) for key in keys):
                return None
        found = names.resolved((*term.parts, *path[1:]), len(names.sources))
        return None if found is None else self._column(query, *found, is_chosen=is_chosen)

    def _within(self, relation: _Node, path: Path) -> tuple[_Node, Term] | None:
        """The SELECT whose result a relation is, and the term in it for the column of a path."""
        query, outputs = self._derived.query_of(relation), self._derived.result_of(relation)
        if query is None or query.key != "select" or outputs is None:
            return None
        term = by_name(outputs).get(path[0].lower())
        if term is None or (term.of_column and len(path) > 1):
            return None
        return query, term

    @cached_property
    def _uses(self) -> Mapping[int, int]:
        """How many relations read each inner query."""
        return {id(query): len(uses) for query, uses in self._derived.uses()}

    def _names_of(self, select: _Node) -> Names:
        found = self._names_found
        if id(select) not in found:
            nodes, numbers = relations_of(select), self.numbers(select)
            sources = [self._source(*each) for each in zip(nodes, numbers, strict=True)]
            # Columns of a lateral view are unknown; match only names that no relation has.
            views = [Source(frozenset({(name,)}), frozenset()) for name in lateral_views(select)]
            found[id(select)] = Names(
                [*sources, *views], joined_names(select), self._is_case_sensitive
            )
        return found[id(select)]

    @cached_property
    def _is_case_sensitive(self) -> bool:
        return self.setting("spark.sql.caseSensitive") == "true"

    @cached_property
    def _numbers_found(self) -> dict[int, list[int | None]]:
        """Numbers already found for SELECTs, keyed by `id`."""
        return {}

    @cached_property
    def _names_found(self) -> dict[int, Names]:
        """Names already resolved for SELECTs, keyed by `id`."""
        return {}

    def _add_needed(self, carrier: Carrier, needed: ViewNeeded) -> None:
        text = f"SELECT 1 WHERE {sql_text(needed.condition, needed.schema)}"
        tokens, query = sql_tokens(text), unwrapped(self.tree)
        outline = tokens and outline_of(Cursor(text, tokens), literals=self.outline.literals)
        tree = outline and outline.parsed()
        if not tree or query is None:
            return
        fields = needed.schema.fields
        reader = Reader(
            [Condition(part, column_parts) for part in conjuncts_of(tree.args["where"].this)],
            partial(_named, needed),
        )
        carrier.add(query, [reader], [field.field_type for field in fields])

    @cached_property
    def _derived(self) -> DerivedQueries:
        return DerivedQueries(self.tree, self._is_ours, self._columns_of)

    def _is_ours(self, node: _Node) -> bool:
        return self._numbers([node]) != [None]

    def _columns_of(self, node: _Node) -> Sequence[str] | None:
        """The columns of a relation if it is one of ours."""
        [number] = self._numbers([node])
        schema = None if number is None else self.relations[number].schema
        if schema is None or given_names(node):
            return None
        return [field.name for field in schema.fields]

    def _type_of(self, select: _Node, term: Term) -> IcebergType | None:
        """The type of a term, if it is of a column of ours."""
        names = self._names_of(select)
        found = names.resolved(term.parts, len(names.sources))
        kind = None if found is None else self._type_of_column(select, *found)
        if kind is None or term.of_column is None:
            return kind
        try:
            return term_type(term.of_column, kind)
        except ValueError:
            return None

    def _type_of_column(self, select: _Node, at: int, path: Path) -> IcebergType | None:
        number = self.numbers(select)[at]
        if number is None:
            within = self._within(relations_of(select)[at], path)
            if within is None:
                return None
            query, inner = within
            return self._type_of(query, replace(inner, parts=(*inner.parts, *path[1:])))
        schema = self.relations[number].schema
        if schema is None:
            return None
        try:
            return resolve(quote_name(path), schema, case_sensitive=False).field_type
        except IcebergError:
            return None

    def _read(
        self, node: _Node, number: int, name_of: Callable[[tuple[str, ...]], tuple[str, ...]]
    ) -> Expr:
        schema = self.relations[number].schema
        if schema is None:
            return TRUE
        return said_by(
            node,
            SqlTree(self.outline.literals, name_of, Transforms.QUALIFIED, self.now),
            schema,
            time_zone=self.time_zone,
            means_the_same=partial(self._means_the_same, number),
        )

    def _means_the_same(self, number: int, parsed: Expr) -> bool:
        schema = self.relations[number].schema
        return schema is not None and means_the_same(parsed, schema, self.setting)

    def _is_sampled(self, number: int) -> bool:
        # The sample is taken of all rows.
        return self.relations[number].reference.suffix.is_sampled

    def _numbers(self, nodes: Sequence[_Node]) -> list[int | None]:
        places = [self._place(node) for node in nodes]
        return [None if place is None else self._starts.get(place) for place in places]

    @cached_property
    def _starts(self) -> Mapping[int, int]:
        return {each.reference.start: at for at, each in enumerate(self.relations)}

    def _place(self, node: _Node) -> int | None:
        """Where the query names a table that sqlglot found; None for other relations."""
        if node.key != "table" or node.args.get("joins") or not hasattr(node.parts[0], "meta"):
            return None
        start = node.parts[0].meta.get("start")
        return None if start is None else self.outline.places.get(start)

    def _source(self, node: _Node, number: int | None) -> Source:
        alias = str(node.alias_or_name).lower()
        if number is None:
            columns = self._derived.columns_of(node)
            known = None if columns is None else frozenset(name.lower() for name in columns if name)
            return Source(frozenset({(alias,)}), known)
        relation = self.relations[number]
        qualifiers: frozenset[tuple[str, ...]]
        if relation.reference.suffix.alias is not None:
            qualifiers = frozenset({(relation.reference.suffix.alias.lower(),)})
        else:
            full = (relation.name.catalog, *relation.name.parts)
            names: list[tuple[str, ...]] = [full, relation.reference.name]
            qualifiers = frozenset(
                tuple(part.lower() for part in name[first:])
                for name in names
                for first in range(len(name))
            )
        if relation.schema is None or given_names(node):
            return Source(qualifiers, None)
        return Source(qualifiers, frozenset(f.name.lower() for f in relation.schema.fields))


def _has_a_row_for_each(query: _Node) -> bool:
    """Whether a query has a row for each row of one table that its WHERE selects, and no others."""
    from sqlglot.expressions import AggFunc

    if query.key != "select" or not is_plain(query) or len(relations_of(query)) != 1:
        return False
    known = {"expressions", "from_", "from", "where"}
    if not {name for name, value in query.args.items() if value} <= known:
        return False
    if query.args.get("where") is None:
        return False
    # Without groups, they give a row in any case; other functions may give none.
    return not any(
        isinstance(node, AggFunc) or node.key in ("anonymous", "explode", "posexplode", "inline")
        for item in query.expressions
        for node in item.walk()
    )


def _named(needed: ViewNeeded, outputs: Sequence[Output]) -> list[Output] | None:
    """The columns of a view's query under the names of the view; None if they have changed."""
    if needed.of_query is not None:
        for output, name in zip(outputs, needed.of_query, strict=False):
            if output.name is not None and output.name.lower() != name.lower():
                return None
    return with_names(outputs, [field.name for field in needed.schema.fields])
