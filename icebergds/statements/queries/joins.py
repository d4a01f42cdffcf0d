"""Finds the conditions of a SELECT that decide which rows of each relation matter.

A condition may be applied to a relation's rows before the join if rows for which it is not true
cannot change the result:

- WHERE filters joined rows. A relation on the nullable side of an outer join also contributes rows
  of nulls, so the condition must not be true for these.
- ON decides which rows match. In an outer join, rows of the preserved side that match nothing stay
  in the result, so ON does not filter that side; rows of the other side that fail ON match nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

# A node of sqlglot's tree.
_Node = Any


class Sides(Enum):
    """The sides whose rows are not needed if they fail a join's condition."""

    BOTH = auto()
    LEFT = auto()
    RIGHT = auto()
    NEITHER = auto()


@dataclass(frozen=True, slots=True)
class Deciding:
    """A condition, and the relations of a SELECT that it may filter.

    Attributes:
        node: sqlglot's tree of the condition.
        visible: how many of the relations, from the first on, its names may refer to; lateral
            views come last.
        hidden: visible ones that its names cannot refer to: right sides of semi and anti joins.
        decided: the relations, by number, whose rows it may filter.
        nullable: those of them whose columns may all be null instead.
    """

    node: _Node
    visible: int
    decided: frozenset[int]
    nullable: frozenset[int]
    hidden: frozenset[int]


def relations_of(select: _Node) -> list[_Node]:
    """The relations of a SELECT, in their order; none if it has none."""
    start = select.args.get("from_") or select.args.get("from")
    if start is None:
        return []
    return [start.this, *(join.this for join in select.args.get("joins") or ())]


def lateral_views(select: _Node) -> list[str]:
    """The names of a SELECT's lateral views, in lower case."""
    return [str(each.alias_or_name).lower() for each in select.args.get("laterals") or ()]


def hidden_relations(select: _Node) -> frozenset[int]:
    """The relations, by number, whose columns are not in the joined rows."""
    joins = select.args.get("joins") or ()
    return frozenset(
        at for at, join in enumerate(joins, start=1) if _kind(join) in ("SEMI", "ANTI")
    )


def deciding_conditions(select: _Node) -> Iterator[Deciding]:
    """The conditions of a SELECT; none if its relations are not plainly joined."""
    joins: Sequence[_Node] = select.args.get("joins") or ()
    hidden: set[int] = set()
    nullable: set[int] = set()
    for at, join in enumerate(joins, start=1):
        sides = _sides(join)
        before = set(range(at)) - hidden
        condition = join.args.get("on")
        if condition is not None:
            left = before if sides in (Sides.BOTH, Sides.LEFT) else set()
            right = {at} if sides in (Sides.BOTH, Sides.RIGHT) else set()
            decided = frozenset(left | right)
            yield Deciding(
                condition, at + 1, decided, frozenset(nullable & decided), frozenset(hidden)
            )
        kind, side = _kind(join), _side(join)
        if kind in ("SEMI", "ANTI"):
            hidden.add(at)
        if side in ("RIGHT", "FULL"):
            nullable |= before
        if side in ("LEFT", "FULL") and kind not in ("SEMI", "ANTI"):
            nullable.add(at)
    where = select.args.get("where")
    if where is not None:
        visible = frozenset(set(range(len(joins) + 1)) - hidden)
        yield Deciding(
            where.this,
            len(joins) + 1 + len(lateral_views(select)),
            visible,
            frozenset(nullable) & visible,
            frozenset(hidden),
        )


def is_plain(select: _Node) -> bool:
    """Whether all joins are of known kinds, and no relation is pivoted."""
    joins = select.args.get("joins") or ()
    return all(_is_known(join) for join in joins) and not any(
        relation.args.get("pivots") for relation in relations_of(select)
    )


def joined_names(select: _Node) -> frozenset[str] | None:
    """Names in USING, in lower case; None if a join is NATURAL and they are not known."""
    joins = select.args.get("joins") or ()
    if any(join.args.get("method") for join in joins):
        return None
    return frozenset(
        str(name.name).lower() for join in joins for name in join.args.get("using") or ()
    )


def _sides(join: _Node) -> Sides:
    kind, side = _kind(join), _side(join)
    if kind == "ANTI":
        return Sides.RIGHT
    match side:
        case "" | "INNER":
            return Sides.BOTH
        case "LEFT" if kind == "SEMI":
            return Sides.BOTH
        case "LEFT":
            return Sides.RIGHT
        case "RIGHT":
            return Sides.LEFT
        case _:
            return Sides.NEITHER


def _is_known(join: _Node) -> bool:
    if not set(join.args) <= _ARGUMENTS and any(
        value for name, value in join.args.items() if name not in _ARGUMENTS
    ):
        return False
    return (
        _kind(join) in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI")
        and _side(join) in ("", "LEFT", "RIGHT", "FULL")
        and str(join.args.get("method") or "").upper() in ("", "NATURAL")
    )


_ARGUMENTS = frozenset({"this", "on", "using", "side", "kind", "method"})


def _kind(join: _Node) -> str:
    return str(join.args.get("kind") or "").upper()


def _side(join: _Node) -> str:
    return str(join.args.get("side") or "").upper()
