"""Renames a table of Glue: creates its entry under the new name and deletes the old one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.catalog.glue.pointer import GluePointer
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    NoSuchNamespaceError,
    NoSuchTableError,
)

__all__ = ["rename_entry"]


def rename_entry(source: GluePointer, target: GluePointer) -> None:
    """Renames a table.

    If the old entry is not deleted for certain, the new one is deleted again.

    Raises:
        NoSuchTableError: the source does not exist, or is not an Iceberg table.
        NoSuchNamespaceError: the namespace of the target does not exist.
        AlreadyExistsError: the target exists.
        CommitConflictError: the source was changed meanwhile.
        CommitStateUnknownError: there may be both entries.
    """
    pointer = source.find()
    if pointer is None:
        raise NoSuchTableError(f"table {source.name} does not exist in its catalog")
    if (source.database, source.table) == (target.database, target.table):
        raise _exists(source, target)
    entry = pointer.token
    assert isinstance(entry, Mapping), "the pointer is one that was found"
    _create(source, target, entry)
    try:
        _check_unchanged(source, entry)
    except Exception:
        _undo(source, target)
        raise
    reply = source.client.send("delete_table", DatabaseName=source.database, Name=source.table)
    # If it is there, but may still be deleted, the new one must stay.
    if reply.confirmed(_what(source, target), lambda: source.entry() is None):
        return
    _undo(source, target)
    if reply.code == "EntityNotFoundException":
        raise NoSuchTableError(f"table {source.name} was dropped or renamed meanwhile")
    reply.check()


# Parts of a table in Glue that a new entry takes over.
_KEPT = ("Description", "Owner", "TableType", "Parameters", "StorageDescriptor")


def _create(source: GluePointer, target: GluePointer, entry: Mapping[str, Any]) -> None:
    given = {key: entry[key] for key in _KEPT if key in entry} | {"Name": target.table}
    reply = target.client.send("create_table", DatabaseName=target.database, TableInput=given)

    def is_created() -> bool:
        found = target.entry() or {}
        return bool(found.get("Parameters") == entry["Parameters"])

    if not reply.confirmed(_what(source, target), is_created):
        if reply.code == "AlreadyExistsException":
            raise _exists(source, target)
        if reply.code == "EntityNotFoundException":
            raise NoSuchNamespaceError(f"namespace of table {target.name} does not exist")
        reply.check()


def _check_unchanged(source: GluePointer, entry: Mapping[str, Any]) -> None:
    now = source.entry()
    if now is None:
        raise NoSuchTableError(f"table {source.name} was dropped or renamed meanwhile")
    if now.get("VersionId") != entry.get("VersionId"):
        raise CommitConflictError(
            f"table {source.name} was changed by another commit and not renamed; try again"
        )


def _undo(source: GluePointer, target: GluePointer) -> None:
    """Deletes the new entry."""
    reply = target.client.send("delete_table", DatabaseName=target.database, Name=target.table)
    is_gone = reply.confirmed(_what(source, target), lambda: target.entry() is None)
    if not is_gone and reply.code != "EntityNotFoundException":
        raise CommitStateUnknownError(
            f"table {source.name} was not renamed but is also {target.name}, which could not be "
            f"deleted again: drop one before you write to the other ({reply.error})"
        ) from reply.cause


def _exists(source: GluePointer, target: GluePointer) -> AlreadyExistsError:
    return AlreadyExistsError(f"table {source.name} cannot be renamed: {target.name} exists")


def _what(source: GluePointer, target: GluePointer) -> str:
    return (
        f"rename table {source.name} to {target.name} (there may be both now: drop one before you "
        "write to the other)"
    )
