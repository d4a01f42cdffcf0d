"""Finds the columns of queries that are relations of others: sub-queries in FROM, and CTEs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from icebergds.expr import nodes
from icebergds.expr.sql import column_parts, term_of as found_term
from icebergds.statements.queries.joins import hidden_relations, relations_of

# A node of sqlglot's tree.
_Node = Any

Parts: TypeAlias = tuple[str, ...]
"""The name of a column as a query writes it, with its qualifiers."""


@dataclass(frozen=True, slots=True)
class Term:
    """A column of a query's relations, or the day, the year or a transform of one.

    Attributes:
        of_column: None for the column itself.
    """

    parts: Parts
    of_column: nodes.Term | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a query's result.

    Attributes:
        name: None for an expression without an alias.
        term: None for other expressions.
    """

    name: str | None
    term: Term | None


def unwrapped(query: _Node) -> _Node | None:
    """A query without the parentheses and alias around it; None for anything else.

    It is also None if the parentheses have something else, such as LIMIT.
    """
    while query.key == "subquery":
        if has_more_than(query, "this", "alias"):
            return None
        query = query.this
    return query if query.key in (_SELECT, *_SET_OPERATIONS) else None


def branches_of(query: _Node) -> list[_Node] | None:
    """The SELECTs that a query's rows come from, in any order; None if it keeps only some rows.

    A condition on columns of the result may be applied to the rows of each of them.
    """
    if query.key == _SELECT:
        return [query]
    if has_more_than(query, "this", "expression", "distinct", "order", "sort", "with_", "with"):
        return None
    sides = [unwrapped(side) for side in (query.this, query.expression)]
    found = [None if side is None else branches_of(side) for side in sides]
    return None if None in found else [each for side in found if side for each in side]


def outputs_of(
    select: _Node, columns_of: Callable[[_Node], Sequence[str | None] | None]
) -> list[Output] | None:
    """The columns of a SELECT's result, in their order; None if they are not known.

    columns_of: the columns of one of its relations, in their order, with None for those whose names
        are not known; None if the columns are not known.
    """
    outputs: list[Output] = []
    for node in select.expressions:
        if is_star(node):
            of_star = _outputs_of_star(node, select, columns_of)
            if of_star is None:
                return None
            outputs.extend(of_star)
        elif node.key == "alias":
            outputs.append(Output(str(node.alias), term_of(node.this)))
        elif node.key == "aliases" or _may_be_several(node):
            return None
        else:
            parts = column_parts(node)
            outputs.append(Output(None if parts is None else parts[-1], term_of(node)))
    return outputs


def term_of(node: _Node) -> Term | None:
    """The term that a node is; None for other expressions."""
    found = found_term(node)
    return None if found is None else Term(*found)


def by_name(outputs: Iterable[Output]) -> dict[str, Term | None]:
    """The terms of outputs by their names in lower case; None for ambiguous names."""
    found: dict[str, Term | None] = {}
    for output in outputs:
        if output.name is not None:
            name = output.name.lower()
            found[name] = None if name in found else output.term
    return found


def given_names(relation: _Node) -> list[str]:
    """The names that `AS name (columns)` gives the columns of a relation; empty if none."""
    alias = relation.args.get("alias")
    columns = alias.args.get("columns") if alias is not None else None
    return [str(column.name) for column in columns or ()]


def renamed(outputs: Sequence[Output], relation: _Node) -> list[Output] | None:
    """Outputs by the names that a relation gives them; None if the numbers of columns differ."""
    names = given_names(relation)
    return with_names(outputs, names) if names else list(outputs)


def with_names(outputs: Sequence[Output], names: Sequence[str]) -> list[Output] | None:
    """Outputs by other names; None if there are more or fewer names."""
    if len(names) != len(outputs):
        return None
    return [Output(name, output.term) for name, output in zip(names, outputs, strict=True)]


def keys_of(
    select: _Node, outputs: Sequence[Output], same: Callable[[Term], object]
) -> frozenset[int]:
    """The outputs of a SELECT, by position, whose values select whole groups of its rows.

    Rows are grouped by GROUP BY and by each window; without these, each row is its own group.

    Args:
        same: gives a key that is equal for two names of the same column.
    """
    from sqlglot.expressions import Window

    keys = set(range(len(outputs)))
    for window in select.find_all(Window):
        keys &= _places(window.args.get("partition_by") or (), outputs, same)
    group = select.args.get("group")
    if group is not None:
        plain = () if has_more_than(group, "expressions") else group.expressions
        keys &= _places(plain, outputs, same) | _numbered(plain)
    return frozenset(keys)


def _places(
    keys: Sequence[_Node], outputs: Sequence[Output], same: Callable[[Term], object]
) -> set[int]:
    """The positions of the outputs that are among keys."""
    terms = {same(term) for key in keys if (term := term_of(key)) is not None}
    return {
        at for at, each in enumerate(outputs) if each.term is not None and same(each.term) in terms
    }


def _numbered(keys: Sequence[_Node]) -> set[int]:
    """The outputs that GROUP BY names by their numbers; a window has constants there."""
    return {int(key.this) - 1 for key in keys if key.key == "literal" and key.is_int}


def has_more_than(node: _Node, *known: str) -> bool:
    """Whether a node of the tree has parts other than the known ones."""
    return any(value for name, value in node.args.items() if name not in known)


def _outputs_of_star(
    star: _Node, select: _Node, columns_of: Callable[[_Node], Sequence[str | None] | None]
) -> list[Output] | None:
    joins = select.args.get("joins") or ()
    if any(join.args.get("using") or join.args.get("method") for join in joins):
        return None
    if select.args.get("laterals") or has_more_than(_bare(star)):
        return None
    wanted = _qualifier(star)
    hidden = hidden_relations(select)
    relations = [each for at, each in enumerate(relations_of(select)) if at not in hidden]
    if wanted is not None:
        relations = [each for each in relations if _alias(each) == wanted]
        if len(relations) != 1:
            return None
    found: list[Output] = []
    for relation in relations:
        columns = columns_of(relation)
        if columns is None:
            return None
        alias = str(relation.alias_or_name)
        before = (alias,) if alias else ()
        found.extend(
            Output(name, None if name is None else Term((*before, name))) for name in columns
        )
    return found


def _may_be_several(node: _Node) -> bool:
    """Whether an expression without an alias may give several columns, as `posexplode` does."""
    from sqlglot.expressions import UDTF

    return node.key in ("anonymous", "querytransform") or isinstance(node, UDTF)


def _qualifier(star: _Node) -> str | None:
    """The name before `.*`, in lower case; None if there is none."""
    return None if star.key == "star" else ".".join(part.name for part in star.parts[:-1]).lower()


def _alias(relation: _Node) -> str:
    return str(relation.alias_or_name).lower()


def is_star(node: _Node) -> bool:
    return bool(node.key == "star" or (node.key == "column" and node.this.key == "star"))


def _bare(star: _Node) -> _Node:
    return star if star.key == "star" else star.this


_SELECT = "select"
_SET_OPERATIONS = ("union", "intersect", "except")
