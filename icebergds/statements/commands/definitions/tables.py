"""Runs ALTER TABLE, DROP TABLE, and COMMENT ON a table or a column."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from icebergds.api.table import Table
from icebergds.errors import (
    InvalidStatementError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.statements.commands.definitions.alter_columns import (
    read_added,
    read_changed,
    read_changed_as_hive,
    read_dropped,
    read_renamed,
    read_replaced,
    set_column_comments,
)
from icebergds.statements.commands.definitions.alter_layout import (
    read_added_field,
    read_dropped_field,
    read_dropped_identifier_fields,
    read_identifier_fields,
    read_replaced_field,
    read_write_order,
)
from icebergds.statements.commands.definitions.alter_properties import (
    read_location,
    read_set_properties,
    read_unset_properties,
)
from icebergds.statements.commands.definitions.alter_references import (
    read_dropped_reference,
    read_reference,
)
from icebergds.statements.commands.definitions.change import AlteredTable, Change
from icebergds.statements.commands.definitions.columns import refused_constraint
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.names.tables import find_table_to_write
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def alter_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `ALTER TABLE` in one commit, after reading the whole statement."""
    cursor.expect("ALTER", "TABLE")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    if cursor.take("RENAME", "TO"):
        target = cursor.name("the new name of the table")
        cursor.expect_end()
        _rename(scope, name, target)
        return nothing(scope.spark)
    change = _read_change(cursor)
    cursor.expect_end()
    found = find_table_to_write(scope, name)
    if found.branch is not None:
        raise InvalidStatementError(
            f"{name}: ALTER TABLE changes a table, not one of its branches; leave out "
            f"{name.parts[-1]}"
        )
    change(AlteredTable(scope.spark, found.table))
    return nothing(scope.spark)


_FORMS: tuple[tuple[tuple[str, ...], Callable[[Cursor], Change]], ...] = (
    (("ADD", "COLUMN"), read_added),
    (("ADD", "COLUMNS"), read_added),
    (("DROP", "COLUMN"), read_dropped),
    (("DROP", "COLUMNS"), read_dropped),
    (("RENAME", "COLUMN"), read_renamed),
    (("ALTER", "COLUMN"), read_changed),
    (("ALTER",), read_changed),
    (("CHANGE", "COLUMN"), read_changed_as_hive),
    (("CHANGE",), read_changed_as_hive),
    (("REPLACE", "COLUMNS"), read_replaced),
    (("SET", "TBLPROPERTIES"), read_set_properties),
    (("UNSET", "TBLPROPERTIES"), read_unset_properties),
    (("SET", "LOCATION"), read_location),
)
# Iceberg's extensions, which Spark's parser does not know.
_EXTENSIONS: tuple[tuple[tuple[str, ...], Callable[[Cursor], Change]], ...] = (
    (("ADD", "PARTITION", "FIELD"), read_added_field),
    (("DROP", "PARTITION", "FIELD"), read_dropped_field),
    (("REPLACE", "PARTITION", "FIELD"), read_replaced_field),
    (("WRITE",), read_write_order),
    (("SET", "IDENTIFIER", "FIELDS"), read_identifier_fields),
    (("DROP", "IDENTIFIER", "FIELDS"), read_dropped_identifier_fields),
)
_REFERENCES = (("BRANCH",), ("TAG",))
_OF_REFERENCES = (("CREATE",), ("CREATE", "OR", "REPLACE"), ("REPLACE",))
# What Iceberg tables do not have, and what to use instead.
_PARTITIONS = "partitions of Iceberg's tables come and go with their rows; use INSERT or DELETE"
_REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("ADD", "PARTITION"), _PARTITIONS),
    (("ADD", "IF", "NOT", "EXISTS", "PARTITION"), _PARTITIONS),
    (("DROP", "PARTITION"), _PARTITIONS),
    (("DROP", "IF", "EXISTS", "PARTITION"), _PARTITIONS),
    (("PARTITION",), _PARTITIONS),
    (("RECOVER", "PARTITIONS"), _PARTITIONS),
    (("SET", "SERDE"), "use SET TBLPROPERTIES ('write.format.default' = 'orc')"),
    (("SET", "SERDEPROPERTIES"), "use SET TBLPROPERTIES"),
    (("CLUSTER", "BY"), "use WRITE ORDERED BY, or ADD PARTITION FIELD"),
    (("DEFAULT", "COLLATION"), "strings of Iceberg's tables have no collation"),
    (("DROP", "CONSTRAINT"), "they have no constraints but NOT NULL; use ALTER COLUMN"),
)


def _read_change(cursor: Cursor) -> Change:
    for words, read in _EXTENSIONS:
        if cursor.take(*words):
            cursor.is_extension = True
            return read(cursor)
    for ref in _REFERENCES:
        for words in _OF_REFERENCES:
            if cursor.is_at(*words, *ref):
                cursor.is_extension = True
                return read_reference(cursor)
        if cursor.is_at("DROP", *ref):
            cursor.is_extension = True
            cursor.take("DROP")
            return read_dropped_reference(cursor)
    for words, instead in _REFUSED:
        if cursor.is_at(*words):
            raise UnsupportedFeatureError(
                f"ALTER TABLE ... {' '.join(words)} is not supported for tables of Iceberg: "
                f"{instead}"
            )
    for word in ("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"):
        if cursor.is_at("ADD", word):
            cursor.take("ADD")
            raise refused_constraint(cursor)
    for words, read in _FORMS:
        if cursor.take(*words):
            return read(cursor)
    raise cursor.error(
        "ADD, ALTER, CREATE, DROP, RENAME, REPLACE, SET, UNSET or WRITE, and what they change"
    )


def _rename(scope: NameScope, name: CatalogName, target: tuple[str, ...]) -> None:
    """Renames a table within its catalog; a name alone keeps the namespace."""
    catalog = scope.catalog(name.catalog)
    if len(target) == 1:
        target = (*name.parts[:-1], *target)
    elif len(target) > 2 and scope.is_catalog(target[0]):
        if target[0] != name.catalog:
            raise UnsupportedFeatureError(
                f"{name}: a table cannot be renamed into another catalog, {target[0]}; use CREATE "
                "TABLE ... AS SELECT, or the procedure register_table"
            )
        target = target[1:]
    catalog.rename_table(name.parts, target)


def comment_on_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `COMMENT ON TABLE table IS 'text'`, which sets the property `comment`.

    Also runs `COMMENT ON TABLE table COLUMN (column IS 'text', ...)`, in one commit.
    """
    cursor.expect("COMMENT", "ON", "TABLE")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    if cursor.take("COLUMN"):
        cursor.is_extension = True
        comments = _column_comments(cursor.group())
        cursor.expect_end()
        table = find_table_to_write(scope, name).table
        set_column_comments(comments)(AlteredTable(scope.spark, table))
        return nothing(scope.spark)
    text = _text(cursor)
    find_table_to_write(scope, name).table.set_properties({"comment": text})
    return nothing(scope.spark)


def _column_comments(listed: Cursor) -> dict[tuple[str, ...], str]:
    """Reads all of `column IS 'text', column IS NULL`.

    Raises:
        InvalidStatementError: it is malformed, or a column is named twice.
    """
    found: dict[tuple[str, ...], str] = {}
    for item in listed.items():
        path = item.name("the name of a column")
        if any(_lowered(path) == _lowered(each) for each in found):
            raise InvalidStatementError(
                f"{listed.statement.strip()}: column {'.'.join(path)} is given twice; give it once"
            )
        found[path] = _text(item)
    if not found:
        raise listed.error("the name of a column")
    return found


def _lowered(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)


def comment_on_column(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `COMMENT ON COLUMN table.column IS 'text'`."""
    cursor.expect("COMMENT", "ON", "COLUMN")
    parts = cursor.name("the name of a column, behind that of its table")
    names = [(scope.table(parts[:at]), parts[at:]) for at in range(len(parts) - 1, 0, -1)]
    ours = [(name, path) for name, path in names if name is not None]
    if not ours:
        return None
    text = _text(cursor)
    table, path = _find(scope, ours)
    set_column_comments({path: text})(AlteredTable(scope.spark, table))
    return nothing(scope.spark)


def _find(
    scope: NameScope, names: list[tuple[CatalogName, tuple[str, ...]]]
) -> tuple[Table, tuple[str, ...]]:
    """The table of the longest existing name, and the rest of the name: the path of a column.

    Raises:
        NoSuchTableError: there is no such table.
    """
    missing: NoSuchTableError | NoSuchNamespaceError | None = None
    for name, path in names:
        try:
            return scope.catalog(name.catalog).load_table(name.parts), path
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            missing = missing or error
    assert missing is not None, "there is a name"
    raise missing


def _text(cursor: Cursor) -> str:
    """Reads `IS 'text'`; NULL is the empty text, as in Spark."""
    cursor.expect("IS")
    text = "" if cursor.take("NULL") else cursor.text("the text of the comment in quotes, or NULL")
    cursor.expect_end()
    return text


def drop_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `DROP TABLE [IF EXISTS] table [PURGE]`; deletes files only with PURGE."""
    cursor.expect("DROP", "TABLE")
    if_exists = cursor.take("IF", "EXISTS")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    purge = cursor.take("PURGE")
    cursor.expect_end()
    catalog = scope.catalog(name.catalog)
    try:
        if purge:
            catalog.purge_table(name.parts)
        else:
            catalog.drop_table(name.parts)
    except (NoSuchTableError, NoSuchNamespaceError):
        if not if_exists:
            raise
    return nothing(scope.spark)
