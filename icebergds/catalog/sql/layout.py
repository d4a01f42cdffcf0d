"""Creates or upgrades a catalog's database tables, and detects their version."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, false, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateTable

from icebergds.catalog.sql.database import Database
from icebergds.catalog.sql.mysql import table_options
from icebergds.catalog.sql.tables import METADATA, NAMESPACE_PROPERTIES, TABLES
from icebergds.errors import InvalidOptionError


def prepare_tables(database: Database, *, create: bool, upgrade: bool) -> bool:
    """Prepares a database for a catalog.

    Args:
        create: whether to create missing tables, in version 1 of the layout.
        upgrade: whether to upgrade tables of version 0 to version 1.

    Returns:
        Whether the layout is version 1, which has a column `iceberg_type`.

    Raises:
        InvalidOptionError: tables are missing and must not be created.
        IcebergError: the database fails.
    """
    try:
        if _is_newest(database.engine):
            return True
        columns = _columns(database.engine)
        if columns is None and create:
            _create(database.engine)
            columns = _columns(database.engine)
        if columns is None:
            raise InvalidOptionError(
                f"catalog {database.catalog}: its database has no tables {TABLES.name} and "
                f"{NAMESPACE_PROPERTIES.name}, and init_catalog_tables is false; check the uri, or "
                "set init_catalog_tables to true"
            )
        if upgrade and _TYPE not in columns:
            _upgrade(database.engine)
            return True
    except (SQLAlchemyError, OSError, TypeError, ValueError) as error:
        # The other types: drivers that do not accept a parameter of the URL.
        cause = database.cause(error)
        raise database.failure("cannot be used for a catalog", error) from cause
    return _TYPE in columns


_TYPE = TABLES.c.iceberg_type.name
# Finds no rows; fails if a table or the column `iceberg_type` is missing.
_PROBE = select(TABLES.c.iceberg_type).join(NAMESPACE_PROPERTIES, false())


def _is_newest(engine: Engine) -> bool:
    """Whether the tables of version 1 exist, checked with one statement, since they usually do."""
    with engine.connect() as connection:
        try:
            connection.execute(_PROBE)
        except SQLAlchemyError:
            return False
    return True


def _columns(engine: Engine) -> set[str] | None:
    """The columns of the table `iceberg_tables`; None if a database table is missing."""
    with engine.connect() as connection:
        inspector = inspect(connection)
        if not all(inspector.has_table(table) for table in METADATA.tables):
            return None
        return {column["name"] for column in inspector.get_columns(TABLES.name)}


def _create(engine: Engine) -> None:
    try:
        with engine.begin() as connection:
            for table in METADATA.sorted_tables:
                statement = CreateTable(table, if_not_exists=True).compile(dialect=engine.dialect)
                connection.execute(text(f"{statement}{table_options(engine.dialect)}"))
    except SQLAlchemyError:
        # Another process may have created them in the meantime.
        if _columns(engine) is None:
            raise


def _upgrade(engine: Engine) -> None:
    try:
        with engine.begin() as connection:
            _add_type(connection)
    except SQLAlchemyError:
        if _TYPE not in (_columns(engine) or ()):
            raise


def _add_type(connection: Connection) -> None:
    connection.execute(text(f"ALTER TABLE {TABLES.name} ADD COLUMN {_TYPE} VARCHAR(5)"))
