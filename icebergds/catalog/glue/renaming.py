"""Renames a table of Glue: creates its entry under the new name and deletes the old one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.catalog.aws.client import Reply
from icebergds.catalog.glue.pointer import GluePointer
from icebergds.catalog.glue.table_input import METADATA_LOCATION
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
    entry = pointer.token
    assert isinstance(entry, Mapping), "the pointer is one that was found"
    _create(source, target, entry)
    try:
        _check_unchanged(source, entry)
    except Exception:
        _undo(source, target)
        raise
    reply = source.client.send("delete_table", DatabaseName=source.database, Name=source.table)
    if reply.error is None:
        return
    if reply.uncertain:
        _require_gone(source, target, reply)
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
    if reply.error is None:
        return
    exists = reply.code == "AlreadyExistsException"
    if reply.uncertain:
        try:
            found = target.entry()
        except Exception:
            raise _unknown(source, target, reply) from reply.cause
        location = entry["Parameters"].get(METADATA_LOCATION)
        if found is not None and found.get("Parameters", {}).get(METADATA_LOCATION) == location:
            return
        if found is None:
            raise _unknown(source, target, reply) from reply.cause
        exists = True
    if exists:
        raise AlreadyExistsError(f"table {source.name} cannot be renamed: {target.name} exists")
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


def _require_gone(source: GluePointer, target: GluePointer, reply: Reply) -> None:
    """Looks for the old entry, which may have been deleted.

    Raises:
        CommitStateUnknownError: it is there, but may still be deleted, so the new one must stay.
    """
    try:
        gone = source.entry() is None
    except Exception:
        gone = False
    if not gone:
        raise _unknown(source, target, reply) from reply.cause


def _undo(source: GluePointer, target: GluePointer) -> None:
    """Deletes the new entry."""
    reply = target.client.send("delete_table", DatabaseName=target.database, Name=target.table)
    if reply.error is not None and reply.code != "EntityNotFoundException":
        raise _unknown(source, target, reply) from reply.cause


def _unknown(source: GluePointer, target: GluePointer, reply: Reply) -> CommitStateUnknownError:
    reason = "" if reply.error is None else reply.error.reason
    return CommitStateUnknownError(
        f"table {source.name}: it is unknown whether it was renamed to {target.name}, and there "
        f"may be both, which are the same table: before you write to one, drop the other ({reason})"
    )
