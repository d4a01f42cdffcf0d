"""Reads the definition of a new table in CREATE and REPLACE TABLE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from icebergds.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    InvalidStatementError,
    UnsupportedFeatureError,
)
from icebergds.expr.names import in_backticks
from icebergds.spec.table_properties import (
    DEFAULT_FILE_FORMAT,
    FORMAT_VERSION,
    RESERVED_PROPERTIES,
)
from icebergds.statements.commands.definitions.alter_properties import refuse_reserved
from icebergds.statements.commands.definitions.columns import ColumnDefinition, read_column
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.properties import read_properties

_DESCRIBING = RESERVED_PROPERTIES - {FORMAT_VERSION} | {"sort-order", "identifier-fields"}


@dataclass(slots=True)
class TableDefinition:
    """What a statement says about a new table.

    Attributes:
        partition_by: terms such as `days(ts)`.
        query: gives the rows of the table; None if it has none.
        clauses: the first words of the clauses that have been read.
    """

    columns: list[ColumnDefinition] = field(default_factory=list)
    partition_by: list[str] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    location: str | None = None
    query: Cursor | None = None
    clauses: set[tuple[str, ...]] = field(default_factory=set)


def read_definition(cursor: Cursor, *, external: bool = False) -> TableDefinition:
    """Reads what follows the name of a table, to the end of the statement.

    Args:
        external: whether the statement says EXTERNAL.

    Raises:
        InvalidStatementError: it is malformed.
        UnsupportedFeatureError: it asks for something that Iceberg tables do not have.
    """
    found = TableDefinition()
    if cursor.is_at_sign("(") and not _is_query(cursor):
        found.columns = _columns(cursor.group())
    if cursor.take("USING"):
        use_format(found, cursor.name("the format of the table"))
    while _read_clause(cursor, found):
        pass
    if external:
        _add_properties(found, {"external": "true"})
    if not cursor.is_done:
        found.query = _query(cursor, found)
    return found


def read_like_clause(cursor: Cursor, found: TableDefinition) -> bool:
    """Reads a clause of `CREATE TABLE ... LIKE`, if one comes next."""
    if cursor.take("USING"):
        use_format(found, cursor.name("the format of the table"))
        return True
    if any(cursor.is_at(*words) for words in _OF_LIKE):
        return _read_clause(cursor, found)
    _refuse(cursor)
    return False


_CLAUSES = (
    ("PARTITIONED", "BY"),
    ("CLUSTERED", "BY"),
    ("TBLPROPERTIES",),
    ("OPTIONS",),
    ("LOCATION",),
    ("COMMENT",),
)
_OF_LIKE = (("TBLPROPERTIES",), ("LOCATION",))
_FORMATS = ("iceberg", "icebergpy")
_FILE_FORMATS = ("parquet", "orc", "avro")
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE")
_REFUSED = {
    ("STORED", "AS"): "use TBLPROPERTIES ('write.format.default' = 'orc')",
    ("STORED", "BY"): "use USING iceberg",
    ("ROW", "FORMAT"): "their files are Parquet, ORC or Avro",
    ("SKEWED", "BY"): "partition them by a transform such as bucket(16, id)",
    ("CLUSTER", "BY"): "partition them, or use ALTER TABLE ... WRITE ORDERED BY",
    ("SORTED", "BY"): "use ALTER TABLE ... WRITE ORDERED BY",
    ("DEFAULT", "COLLATION"): "their strings have no collation",
}


def _columns(listed: Cursor) -> list[ColumnDefinition]:
    found = [_column(listed)]
    while listed.take_sign(","):
        found.append(_column(listed))
    listed.expect_end()
    return found


def _column(listed: Cursor) -> ColumnDefinition:
    start = listed.at
    column = read_column(listed)
    if len(column.path) > 1 or column.place is not None:
        listed.at = start
        raise listed.error("a column: a name without dots, a type and clauses but FIRST and AFTER")
    return column


def _is_query(cursor: Cursor) -> bool:
    """Whether the parentheses that come next contain a query, not columns."""
    first = cursor.peek(1)
    return first is not None and (first.is_sign("(") or first.is_word("SELECT", "WITH"))


def _read_clause(cursor: Cursor, found: TableDefinition) -> bool:
    words = next((words for words in _CLAUSES if cursor.is_at(*words)), None)
    if words is None:
        _refuse(cursor)
        return False
    if words in found.clauses:
        raise cursor.error(f"{' '.join(words)} once")
    found.clauses.add(words)
    cursor.take(*words)
    match words[0]:
        case "PARTITIONED":
            _partitioned_by(cursor.group(), found)
        case "CLUSTERED":
            found.partition_by.append(_buckets(cursor))
        case "TBLPROPERTIES":
            _add_properties(found, _properties(cursor))
        case "OPTIONS":
            add_options(found, read_properties(cursor.group()))
        case "LOCATION":
            found.location = cursor.text("a location in quotes")
        case _:
            _add_properties(found, {"comment": cursor.text("the text of the comment in quotes")})
    return True


def _properties(cursor: Cursor) -> dict[str, str]:
    properties = read_properties(cursor.group())
    refuse_reserved(properties)
    if "location" in properties:
        raise InvalidStatementError("property 'location' is reserved; use LOCATION")
    return {name: value for name, value in properties.items() if not _describes(name, value)}


def _describes(name: str, value: str) -> bool:
    """Whether a property only describes a table in SHOW CREATE TABLE."""
    return name in _DESCRIBING or (name == "format" and value.startswith("iceberg/"))


def _refuse(cursor: Cursor) -> None:
    for words, instead in _REFUSED.items():
        if cursor.is_at(*words):
            raise UnsupportedFeatureError(
                f"{' '.join(words)} is not supported for tables of Iceberg: {instead}"
            )


def _add_properties(found: TableDefinition, properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        if found.properties.setdefault(name, value) != value:
            raise InvalidOptionError(
                f"property {name!r} of the new table is given twice, as {value!r} and as "
                f"{found.properties[name]!r}; clauses such as USING and OPTIONS set it, too"
            )


def add_options(found: TableDefinition, options: Mapping[str, str]) -> None:
    """Adds options to the properties under both names, as Spark passes them.

    Raises:
        InvalidOptionError: a property has another value already.
    """
    named = {f"option.{name}": value for name, value in options.items()}
    _add_properties(found, {**options, **named})


def use_format(found: TableDefinition, name: tuple[str, ...]) -> None:
    """Sets the format of the table, or of its files.

    Raises:
        UnsupportedFeatureError: the catalog does not support tables of the format.
    """
    given = ".".join(name).lower()
    if given in _FILE_FORMATS:
        _add_properties(found, {DEFAULT_FILE_FORMAT.name: given})
    elif given not in _FORMATS:
        raise UnsupportedFeatureError(
            f"USING {'.'.join(name)}: the catalog has tables of Iceberg alone; expected iceberg, "
            "or parquet, orc or avro for the format of its files"
        )


def _partitioned_by(listed: Cursor, found: TableDefinition) -> None:
    """Reads transforms and column names, or columns with types, which it adds to the table.

    Raises:
        InvalidStatementError: it has both.
    """
    has_types = _partition_field(listed, found)
    while listed.take_sign(","):
        at = listed.at
        if _partition_field(listed, found) != has_types:
            listed.at = at
            raise listed.error("either columns with types, or transforms and names of columns")
    listed.expect_end()


def _partition_field(listed: Cursor, found: TableDefinition) -> bool:
    """Reads one of them; returns whether it is a column with a type."""
    start = listed.at
    name = listed.name("a column or a transform of one, such as days(ts)")
    if listed.is_at_sign("("):
        listed.group()
    elif not listed.is_done and not listed.is_at_sign(","):
        listed.at = start
        found.columns.append(_column(listed))
        found.partition_by.append(in_backticks(name))
        return True
    found.partition_by.append(listed.part(start, listed.at).written)
    return False


def _buckets(cursor: Cursor) -> str:
    """Reads the columns and the number in `CLUSTERED BY`, and returns them as a transform."""
    listed = cursor.group()
    column = listed.name("the name of a column")
    if not listed.is_done:
        raise UnsupportedFeatureError(
            "CLUSTERED BY several columns is not supported: a bucket of Iceberg is of one column; "
            "use PARTITIONED BY (bucket(n, a), bucket(n, b))"
        )
    _refuse(cursor)
    cursor.expect("INTO")
    number = cursor.integer("the number of buckets")
    cursor.expect("BUCKETS")
    return f"bucket({number}, {in_backticks(column)})"


def _query(cursor: Cursor, found: TableDefinition) -> Cursor:
    """Reads `AS query`, to the end of the statement."""
    if not cursor.take("AS") and not (cursor.is_at_sign("(") or _begins_query(cursor)):
        raise cursor.error("a clause of the table, or AS and a query")
    if found.columns:
        raise InvalidStatementError(
            "columns with types cannot be given together with AS and a query, which names them"
        )
    return cursor.rest()


def _begins_query(cursor: Cursor) -> bool:
    return any(cursor.is_at(word) for word in _QUERIES)


_OWNER = "owner"


def create_once(
    scope: NameScope, name: CatalogName, create: Callable[[], object], *, if_not_exists: bool
) -> None:
    """Creates a table.

    Raises:
        AlreadyExistsError: the name exists, and the statement does not say IF NOT EXISTS.
    """
    catalog = scope.catalog(name.catalog)
    if if_not_exists and catalog.table_exists(name.parts):
        return
    try:
        create()
    except AlreadyExistsError:
        # Another writer may have created it in the meantime, or a view may have the name.
        if not if_not_exists or not catalog.table_exists(name.parts):
            raise


def with_owner(spark: SparkSession, properties: Mapping[str, str]) -> dict[str, str]:
    """Adds the owner to the properties of a new table: the session's user, according to Spark."""
    (row,) = spark_sql(spark, "SELECT current_user", Arguments()).collect()
    return {**properties, _OWNER: str(row[0])}
