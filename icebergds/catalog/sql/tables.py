"""Reads and writes the two database tables of an SQL catalog, those of Java Iceberg and PyIceberg.

`iceberg_tables` has a row with the current metadata file of each table. Version 0 of the layout
lacks its column `iceberg_type`, which distinguishes tables from views.
`iceberg_namespace_properties` has a row for each property of a namespace, one of them `exists`. The
parts of a namespace are joined by dots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    CompoundSelect,
    Insert,
    MetaData,
    Select,
    String,
    Table,
    Update,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from icebergds.catalog.base import Identifier
from icebergds.catalog.pointer.pointer import Pointer
from icebergds.catalog.sql.database import Database, Write

METADATA = MetaData()

TABLES = Table(
    "iceberg_tables",
    METADATA,
    Column("catalog_name", String(255), primary_key=True),
    Column("table_namespace", String(255), primary_key=True),
    Column("table_name", String(255), primary_key=True),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column("iceberg_type", String(5)),
)
NAMESPACE_PROPERTIES = Table(
    "iceberg_namespace_properties",
    METADATA,
    Column("catalog_name", String(255), primary_key=True),
    Column("namespace", String(255), primary_key=True),
    Column("property_key", String(255), primary_key=True),
    Column("property_value", String(1000)),
)

EXISTS = "exists"
"""A property that every namespace has, so that it has a row even without other properties."""


TABLE = "TABLE"
VIEW = "VIEW"


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of a catalog's tables, or those of its views.

    Attributes:
        typed: whether the layout is version 1, which distinguishes tables from views.
        kind: `TABLE` or `VIEW`.
    """

    database: Database
    typed: bool
    kind: str = TABLE

    def find(self, identifier: Identifier) -> Pointer | None:
        columns = TABLES.c.metadata_location, TABLES.c.previous_metadata_location
        rows = self.database.read(select(*columns).where(self._is(identifier)))
        return Pointer(*rows[0]) if rows else None

    def has_key(self, identifier: Identifier) -> bool:
        """Whether a table or view has this name, or one that the database considers equal."""
        condition = and_(
            TABLES.c.catalog_name == self.database.catalog,
            TABLES.c.table_namespace == joined(identifier[:-1]),
            TABLES.c.table_name == identifier[-1],
        )
        return bool(self.database.read(select(TABLES.c.table_name).where(condition)))

    def names(self, namespace: Identifier) -> list[str]:
        condition = and_(self._in_catalog(), _same(TABLES.c.table_namespace, joined(namespace)))
        return [row[0] for row in self.database.read(select(TABLES.c.table_name).where(condition))]

    def insert(self, identifier: Identifier, metadata_location: str) -> Write:
        values = {
            "catalog_name": self.database.catalog,
            "table_namespace": joined(identifier[:-1]),
            "table_name": identifier[-1],
            "metadata_location": metadata_location,
        }
        if self.typed:
            values["iceberg_type"] = self.kind
        return self.database.write(insert(TABLES).values(values))

    def swap(self, *swaps: tuple[Identifier, str, str]) -> Write:
        """Sets metadata files of rows if they are unchanged (compare-and-swap).

        Args:
            swaps: identifier, current metadata file and new one; swaps all, or none.
        """
        return self.database.write_each(*(self._swap(*each) for each in swaps))

    def _swap(self, identifier: Identifier, base: str, new: str) -> Update:
        return (
            update(TABLES)
            .where(self._is(identifier), _same(TABLES.c.metadata_location, base))
            .values(metadata_location=new, previous_metadata_location=base)
        )

    def rename(self, source: Identifier, target: Identifier) -> Write:
        statement = (
            update(TABLES)
            .where(self._is(source))
            .values(table_namespace=joined(target[:-1]), table_name=target[-1])
        )
        return self.database.write(statement)

    def delete(self, identifier: Identifier, metadata_location: str | None) -> Write:
        """Deletes a row if its metadata file is unchanged."""
        column = TABLES.c.metadata_location
        is_current = (
            column.is_(None) if metadata_location is None else _same(column, metadata_location)
        )
        return self.database.write(delete(TABLES).where(self._is(identifier), is_current))

    def _is(self, identifier: Identifier) -> ColumnElement[bool]:
        return and_(
            self._in_catalog(),
            _same(TABLES.c.table_namespace, joined(identifier[:-1])),
            _same(TABLES.c.table_name, identifier[-1]),
        )

    def _in_catalog(self) -> ColumnElement[bool]:
        ours = _same(TABLES.c.catalog_name, self.database.catalog)
        if not self.typed:
            return ours
        of_kind = TABLES.c.iceberg_type == self.kind
        if self.kind == TABLE:
            # Rows that predate the column `iceberg_type` are tables.
            of_kind = or_(of_kind, TABLES.c.iceberg_type.is_(None))
        return and_(ours, of_kind)


@dataclass(frozen=True, slots=True)
class NamespaceRows:
    """The rows of a catalog's namespaces: those with properties, and those with tables."""

    database: Database

    def below(self, namespace: Identifier) -> set[Identifier]:
        """A namespace, if it exists, and those below it at any depth."""
        found = {split(row[0]) for row in self.database.read(self._select(namespace))}
        return {other for other in found if other[: len(namespace)] == namespace}

    def has_rows_of_tables(self, namespace: Identifier) -> bool:
        """Whether there are tables or views in a namespace."""
        condition = and_(
            _same(TABLES.c.catalog_name, self.database.catalog),
            _same(TABLES.c.table_namespace, joined(namespace)),
        )
        return bool(self.database.read(select(TABLES.c.table_name).where(condition).limit(1)))

    def has_key(self, namespace: Identifier) -> bool:
        """Whether rows have this namespace, or one that the database considers equal."""
        condition = and_(
            NAMESPACE_PROPERTIES.c.catalog_name == self.database.catalog,
            NAMESPACE_PROPERTIES.c.namespace == joined(namespace),
        )
        return bool(self.database.read(select(NAMESPACE_PROPERTIES.c.namespace).where(condition)))

    def other_catalogs(self) -> list[str]:
        """The names of the database's other catalogs, sorted."""
        names = union_all(*(select(t.c.catalog_name).distinct() for t in METADATA.sorted_tables))
        return sorted({row[0] for row in self.database.read(names)} - {self.database.catalog})

    def insert(self, namespace: Identifier, properties: Mapping[str, str]) -> Write:
        return self.database.write(self._insert(namespace, {**properties, EXISTS: "true"}))

    def delete(self, namespace: Identifier) -> Write:
        return self.database.write(delete(NAMESPACE_PROPERTIES).where(self._is(namespace)))

    def properties(self, namespace: Identifier) -> dict[str, str]:
        columns = NAMESPACE_PROPERTIES.c.property_key, NAMESPACE_PROPERTIES.c.property_value
        rows = self.database.read(select(*columns).where(self._is(namespace)))
        return {key: value for key, value in rows if key != EXISTS and value is not None}

    def update(
        self, namespace: Identifier, removals: set[str], updates: Mapping[str, str]
    ) -> Write:
        # PyIceberg does not store `exists` for namespaces with properties: without it, removing the
        # last property would remove the namespace.
        values = {**updates, EXISTS: "true"}
        replaced = NAMESPACE_PROPERTIES.c.property_key.in_(sorted(removals | values.keys()))
        return self.database.write(
            delete(NAMESPACE_PROPERTIES).where(self._is(namespace), replaced),
            self._insert(namespace, values),
        )

    def _insert(self, namespace: Identifier, properties: Mapping[str, str]) -> Insert:
        return insert(NAMESPACE_PROPERTIES).values(
            [
                {
                    "catalog_name": self.database.catalog,
                    "namespace": joined(namespace),
                    "property_key": key,
                    "property_value": value,
                }
                for key, value in properties.items()
            ]
        )

    def _is(self, namespace: Identifier) -> ColumnElement[bool]:
        return and_(
            _same(NAMESPACE_PROPERTIES.c.catalog_name, self.database.catalog),
            _same(NAMESPACE_PROPERTIES.c.namespace, joined(namespace)),
        )

    def _select(self, namespace: Identifier) -> CompoundSelect[Any]:
        def names(table: Table, column: Column[str]) -> Select[Any]:
            condition = _same(table.c.catalog_name, self.database.catalog)
            if namespace:
                # Not LIKE, which ignores case in some databases and has special characters.
                prefix = joined(namespace) + "."
                starts = _same(func.substr(column, 1, len(prefix)), prefix)
                condition = and_(condition, or_(_same(column, joined(namespace)), starts))
            return select(column).where(condition).group_by(column, _exactly(column))

        return union_all(
            names(TABLES, TABLES.c.table_namespace),
            names(NAMESPACE_PROPERTIES, NAMESPACE_PROPERTIES.c.namespace),
        )


def joined(namespace: Identifier) -> str:
    """A namespace as stored."""
    return ".".join(namespace)


def split(text: str) -> Identifier:
    """A stored namespace as an identifier; the empty name is ()."""
    return tuple(text.split(".")) if text else ()


# Texts are compared exactly. Databases compare with the collation of a column, which an
# administrator may have chosen: in MySQL and MariaDB, most ignore case, accents and trailing
# blanks.


def _same(column: ColumnElement[str], value: str) -> ColumnElement[bool]:
    """The condition that a column has exactly this value."""
    return _Same(column, value)


def _exactly(column: ColumnElement[str]) -> ColumnElement[str]:
    """A column to group by, by its exact value."""
    return _Exactly(column)


class _Same(FunctionElement[bool]):
    name = "same"
    type = Boolean()
    inherit_cache = True


class _Exactly(FunctionElement[str]):
    name = "exactly"
    type = String()
    inherit_cache = True


@compiles(_Same)
def _plain_same(element: _Same, compiler: SQLCompiler, **options: Any) -> str:
    one, other = _sides(element, compiler, options)
    return f"{one} = {other}"


@compiles(_Same, "mysql", "mariadb")
def _mysql_same(element: _Same, compiler: SQLCompiler, **options: Any) -> str:
    one, other = _sides(element, compiler, options)
    # The first comparison can use an index.
    return f"({one} = {other} AND {_bytes(one)} = {_bytes(other)})"


@compiles(_Exactly)
def _plain_exactly(element: _Exactly, compiler: SQLCompiler, **options: Any) -> str:
    return _sides(element, compiler, options)[0]


@compiles(_Exactly, "mysql", "mariadb")
def _mysql_exactly(element: _Exactly, compiler: SQLCompiler, **options: Any) -> str:
    return _bytes(_sides(element, compiler, options)[0])


def _sides(
    element: FunctionElement[Any], compiler: SQLCompiler, options: dict[str, Any]
) -> list[str]:
    return [compiler.process(clause, **options) for clause in element.clauses]


def _bytes(text: str) -> str:
    return f"CAST(CONVERT({text} USING utf8mb4) AS BINARY)"
