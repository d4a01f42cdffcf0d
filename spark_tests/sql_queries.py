"""Random queries over three tables, `{0}` to `{2}`, and their rows: where wrong pruning would hide.

The columns are `id`, `v`, `w` (integers, `v` and `w` with nulls), `name` (text with nulls) and
`day` (a date, by which the tables are partitioned).
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field

import pyarrow as pa

SCHEMA = "id bigint, v int, w int, name string, day date"
TABLES = 3
_NUMBERS = ("id", "v", "w")
_COLUMNS = (*_NUMBERS, "name", "day")
_FIRST_DAY = dt.date(2026, 1, 1)
_DAYS = 4


def random_rows(rng: random.Random, count: int) -> pa.Table:
    """Rows of a table, with few values each, so that conditions and joins match some."""

    def maybe(value: object) -> object:
        return None if rng.random() < 0.2 else value

    rows = [
        {
            "id": rng.randrange(8),
            "v": maybe(rng.randrange(4)),
            "w": maybe(rng.randrange(4)),
            "name": maybe(rng.choice(["a", "ab", "b", ""])),
            "day": maybe(_FIRST_DAY + dt.timedelta(days=rng.randrange(_DAYS))),
        }
        for _ in range(count)
    ]
    types = [pa.int64(), pa.int32(), pa.int32(), pa.string(), pa.date32()]
    schema = pa.schema(list(zip(_COLUMNS, types, strict=True)))
    return pa.Table.from_pylist(rows, schema)


def random_query(rng: random.Random) -> str:
    """A query without an order of its rows, which are all of its columns' values."""
    return _Queries(rng).query(depth=rng.choice([2, 2, 3]))


def random_view(rng: random.Random) -> str:
    """A query whose rows have the columns of the tables."""
    return _Queries(rng).view()


@dataclass
class _Queries:
    rng: random.Random
    _names: int = field(default=0)

    def query(self, depth: int) -> str:
        roll = self.rng.random()
        if depth and roll < 0.15:
            operation = self.rng.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
            return f"{self._plain(depth - 1, 2)} {operation} {self._plain(depth - 1, 2)}"
        if depth and roll < 0.3:
            inner, name = self._common(depth - 1)
            if self.rng.random() < 0.5:
                one, other = (self._over([(name, name)], depth - 1, 5) for _ in range(2))
                return f"{inner}{one} UNION ALL {other}"
            return inner + self._over([(name, name)], depth - 1, self._width())
        return self._plain(depth, self._width())

    def view(self) -> str:
        return self._derived(1)

    def _width(self) -> int:
        return self.rng.choice([1, 2, 5])

    def _plain(self, depth: int, width: int) -> str:
        relations = [self._relation(depth) for _ in range(self.rng.choice([1, 1, 2, 2, 3]))]
        return self._over(relations, depth, width)

    def _over(self, relations: list[tuple[str, str]], depth: int, width: int) -> str:
        """A SELECT of so many columns over relations, given as text and alias."""
        (text, alias), *others = relations
        visible = [alias]
        for other, name in others:
            kind = self.rng.choice(_JOINS)
            if kind == ",":
                text += f" CROSS JOIN {other}"
                visible.append(name)
                continue
            text += f" {kind} {other} ON {self._condition([*visible, name], depth, joins=True)}"
            if "SEMI" not in kind and "ANTI" not in kind:
                visible.append(name)
        where = f" WHERE {self._condition(visible, depth)}" if self.rng.random() < 0.8 else ""
        if width == 5:
            one = self.rng.choice(visible)
            columns = [f"{one}.{name}" for name in _COLUMNS]
            star = len(visible) == 1 and self.rng.random() < 0.5
            return f"SELECT {'*' if star else ', '.join(columns)} FROM {text}{where}"
        if width == 1 and self.rng.random() < 0.5:
            return f"SELECT count(*) AS n FROM {text}{where}"
        columns = [f"{self._column(visible, _NUMBERS)} AS x{at}" for at in range(width)]
        if width == 1 and self.rng.random() < 0.3:
            # Rows that are equal are the only ones without an order.
            order = self.rng.choice(["", " DESC", " NULLS LAST", " DESC NULLS FIRST"])
            limit = f"ORDER BY 1{order} LIMIT {self.rng.randrange(1, 5)}"
            return f"SELECT * FROM (SELECT {columns[0]} FROM {text}{where} {limit})"
        if width == 2 and self.rng.random() < 0.4:
            return self._aggregates(visible, f"FROM {text}{where}")
        if width == 2 and self.rng.random() < 0.3:
            key = self._column(visible, _COLUMNS)
            having = " HAVING count(*) > 1" if self.rng.random() < 0.5 else ""
            return (
                f"SELECT max({self._column(visible, _NUMBERS)}) AS x0, count({key}) AS x1"
                f" FROM {text}{where} GROUP BY {key}{having}"
            )
        return f"SELECT {', '.join(columns)} FROM {text}{where}"

    def _aggregates(self, visible: list[str], rows: str) -> str:
        """Two columns of aggregates, of all rows or by days."""
        day = self._column(visible, ("day",))
        calls = []
        for _ in range(2):
            number, any_of = (self._column(visible, names) for names in (_NUMBERS, _COLUMNS))
            kinds = ["count(*)", f"count({any_of})", f"min({number})", f"max({number})"]
            calls.append(self.rng.choice([*kinds, f"count(DISTINCT {day})"]))
        listed = f"{calls[0]} AS x0, {calls[1]} AS x1"
        match self.rng.randrange(5):
            case 0 | 1:
                return f"SELECT {listed} {rows}"
            case 2:
                days = f"SELECT DISTINCT {day} AS d {rows}"
                return f"SELECT count(*) AS x0, count(d) AS x1 FROM ({days})"
            case 3:
                having = f" HAVING max({day}) >= {self._day()} AND count(*) < 4"
                return f"SELECT {listed} {rows} GROUP BY {day}{having}"
            case _:
                return f"SELECT year({day}) AS x0, {calls[0]} AS x1 {rows} GROUP BY year({day})"

    def _derived(self, depth: int) -> str:
        """A query that has all columns, of which conditions around it may be."""
        roll = self.rng.random()
        if roll < 0.12:
            operation = self.rng.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
            return f"{self._plain(depth, 5)} {operation} {self._plain(depth, 5)}"
        if roll < 0.15:
            # Rows that are equal are the only ones without an order.
            order = ", ".join(_COLUMNS)
            whole = f"({self._plain(depth, 5)}) AS {self._name('l')}"
            return f"SELECT * FROM {whole} ORDER BY {order} LIMIT {self.rng.randrange(1, 6)}"
        if depth and roll < 0.2:
            inner, name = self._common(depth - 1)
            return inner + self._over([(name, name)], depth - 1, 5)
        if roll < 0.3:
            whole, alias = f"({self._plain(depth, 5)})", self._name("g")
            keys, others = self._keys()
            sums = ", ".join(f"max({alias}.{name}) AS {name}" for name in others)
            columns = ", ".join(f"{alias}.{name}" for name in keys)
            chosen = f"SELECT {columns}, {sums} FROM {whole} AS {alias} GROUP BY {columns}"
            return f"SELECT {', '.join(_COLUMNS)} FROM ({chosen}) AS {self._name('o')}"
        if roll < 0.4:
            whole, alias = f"({self._plain(depth, 5)})", self._name("g")
            keys, [first, *others] = self._keys()
            by = self.rng.choice([*[", ".join(keys)] * 4, *keys, "1"])
            window = f"max({first}) OVER (PARTITION BY {by}) AS {first}"
            chosen = f"SELECT {', '.join([*keys, window, *others])} FROM {whole} AS {alias}"
            return f"SELECT {', '.join(_COLUMNS)} FROM ({chosen}) AS {self._name('o')}"
        if roll < 0.55:
            # Columns of others have these names.
            columns = "w AS v, v AS w, id, day, name"
            named = f"SELECT {columns} FROM ({self._plain(depth, 5)}) AS {self._name('n')}"
            return f"SELECT id, v, w, name, day FROM ({named}) AS {self._name('o')}"
        return self._plain(depth, 5)

    def _common(self, depth: int) -> tuple[str, str]:
        """A WITH clause, and the name of its last table."""
        name = self._name("c")
        inner = f"WITH {name} AS ({self._derived(depth)})"
        if self.rng.random() < 0.3:
            before, name = name, self._name("c")
            inner += f", {name} AS ({self._over([(before, before)], depth, 5)})"
            if self.rng.random() < 0.5:
                # The first one is read twice.
                read, alias = f"{before} AS {self._name('r')}", self._name("c")
                both = f"{self._over([(name, name)], 0, 5)} UNION ALL SELECT * FROM {read}"
                inner, name = f"{inner}, {alias} AS ({both})", alias
        return f"{inner} ", name

    def _keys(self) -> tuple[list[str], list[str]]:
        """Some of the columns, and the others."""
        keys = self.rng.sample(_COLUMNS, self.rng.choice([1, 2, 3]))
        return keys, [name for name in _COLUMNS if name not in keys]

    def _relation(self, depth: int) -> tuple[str, str]:
        alias = self._name("r")
        if depth and self.rng.random() < 0.25:
            roll = self.rng.random()
            if roll < 0.1:
                return f"({self._derived(depth - 1)}) AS {alias}(id, w, v, name, day)", alias
            if roll < 0.2:
                inner = f"SELECT id + 0, v, w, name, day FROM ({self._derived(depth - 1)})"
                whole = f"SELECT * FROM ({inner} AS {self._name('n')}) AS {self._name('o')}"
                return f"({whole}) AS {alias}({', '.join(_COLUMNS)})", alias
            return f"({self._derived(depth - 1)}) AS {alias}", alias
        return f"{{{self.rng.randrange(TABLES)}}} AS {alias}", alias

    def _condition(self, visible: list[str], depth: int, *, joins: bool = False) -> str:
        parts = [self._term(visible, depth) for _ in range(self.rng.choice([1, 1, 2, 3]))]
        if joins and len(visible) > 1:
            pair = self.rng.sample(visible, 2)
            equal = self.rng.choice([*(f"id = {{}}.{name}" for name in _NUMBERS), "day = {}.day"])
            parts.append(f"{pair[0]}.{equal.format(pair[1])}")
        text = parts[0]
        for part in parts[1:]:
            text += f" {self.rng.choice(['AND', 'AND', 'AND', 'OR'])} {part}"
        return text

    def _term(self, visible: list[str], depth: int) -> str:
        roll = self.rng.random()
        if roll < 0.1:
            return f"NOT ({self._simple(visible)})"
        if roll < 0.2:
            return f"({self._simple(visible)} OR {self._simple(visible)})"
        if depth and roll < 0.35:
            return self._sub_query(visible, depth - 1)
        return self._simple(visible)

    def _sub_query(self, visible: list[str], depth: int) -> str:
        relation, alias = self._relation(0)
        inner = self._condition([alias], 0)
        if self.rng.random() < 0.3:
            day = self._column(visible, ("day",))
            return f"{day} IN (SELECT {alias}.day FROM {relation} WHERE {inner})"
        if self.rng.random() < 0.5:
            outer = self._column(visible, _NUMBERS)
            is_in = self.rng.choice(["IN", "NOT IN"])
            return f"{outer} {is_in} (SELECT {alias}.v FROM {relation} WHERE {inner})"
        outer = self._column(visible, _NUMBERS)
        exists = self.rng.choice(["EXISTS", "NOT EXISTS"])
        return f"{exists} (SELECT 1 FROM {relation} WHERE {inner} AND {alias}.id = {outer})"

    def _simple(self, visible: list[str]) -> str:
        column = self._column(visible, _NUMBERS)
        number = self.rng.randrange(5)
        match self.rng.randrange(14):
            case 0 | 12 | 13:
                return f"{column} IS NULL"
            case 1:
                return f"{column} IS NOT NULL"
            case 2:
                return f"{column} <=> {self.rng.choice(['NULL', str(number)])}"
            case 3:
                return f"{column} IN ({number}, {number + 2})"
            case 4:
                return f"{column} NOT IN ({number}, {number + 2})"
            case 5:
                return f"{column} BETWEEN {number} AND {number + 1}"
            case 6:
                return f"{self._column(visible, ('name',))} LIKE 'a%'"
            case 7:
                return f"coalesce({column}, {number}) = {number}"
            case 8:
                return f"{self._column(visible, ('day',))} = {self._day()}"
            case 9:
                return f"{self._column(visible, ('day',))} >= {self._day()}"
            case 10:
                return f"{column} {self.rng.choice(['<', '>', '<>'])} {number}"
            case _:
                return f"{column} = {number}"

    def _day(self) -> str:
        day = _FIRST_DAY + dt.timedelta(days=self.rng.randrange(_DAYS))
        return f"{self.rng.choice(['DATE ', ''])}'{day}'"

    def _column(self, visible: list[str], names: tuple[str, ...]) -> str:
        name = self.rng.choice(names)
        if len(visible) == 1 and self.rng.random() < 0.5:
            return name
        return f"{self.rng.choice(visible)}.{name}"

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"


_JOINS = (
    "JOIN",
    "LEFT JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "FULL JOIN",
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN",
    ",",
)
