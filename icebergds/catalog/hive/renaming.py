"""Renames a table in the Hive Metastore."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from icebergds.catalog.hive.calls import ALTER_TABLE, InvalidOperation
from icebergds.catalog.hive.changes import make_change
from icebergds.catalog.hive.connection import Connection
from icebergds.catalog.hive.parameters import METADATA_LOCATION
from icebergds.catalog.hive.pointer import HivePointer, alteration_context
from icebergds.errors import AlreadyExistsError, NoSuchTableError


def rename_table(connection: Connection, source: HivePointer, target: HivePointer) -> None:
    """Renames a table whose files stay where they are.

    The entry is replaced as it was read. As in a commit, a lock and the expected metadata file
    keep this from undoing a commit that comes in between.

    Args:
        target: of an existing database.

    Raises:
        NoSuchTableError: there is no such table, or it is of another format.
        AlreadyExistsError: the target exists.
        CommitConflictError: another writer has the table's lock.
        CommitStateUnknownError: it is unknown whether it was renamed.
    """
    entry = source.entry(connection)
    if entry is None:
        raise NoSuchTableError(f"{source.what} does not exist in its catalog")
    if (source.database, source.table) == (target.database, target.table):
        raise AlreadyExistsError(f"{source.what} cannot be renamed: {target.what} exists")
    location = (entry.parameters or {}).get(METADATA_LOCATION)
    with source.locked(connection, location) if source.locks(entry) else nullcontext():

        def is_done() -> bool:
            if source.is_taken(connection):
                return False
            found = target.find()
            return found is not None and found.metadata_location == location

        try:
            make_change(
                connection,
                source.metastore,
                f"rename {source.what}",
                is_done,
                ALTER_TABLE,
                source.database,
                source.table,
                replace(entry, database=target.database, name=target.table),
                alteration_context(location),
            )
        except InvalidOperation as error:
            # A metastore repeats what failed in its database, and may have done it before.
            if is_done():
                return
            if target.is_taken(connection):
                raise AlreadyExistsError(
                    f"{source.what} cannot be renamed: {target.what} exists"
                ) from None
            raise source.metastore.failure(f"refused to rename {source.what}", error) from error
