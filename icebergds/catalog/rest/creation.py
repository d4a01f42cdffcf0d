"""Creates tables in a REST catalog.

A table without rows is created with one request. A table with rows is staged, then created by a
commit that requires that the table does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icebergds.catalog.base import Identifier
from icebergds.catalog.metadata_writing import next_metadata
from icebergds.catalog.rest import namespaces
from icebergds.catalog.rest.failures import RestError, reading_answer, refusals, unknown_outcome
from icebergds.catalog.rest.operations import RestTableOperations
from icebergds.catalog.rest.session import RestSession
from icebergds.catalog.rest.tables import named, table_state
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    IcebergError,
    InvalidOptionError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.io.fileio import FileIO
from icebergds.io.locations import is_absolute
from icebergds.spec.json.partition import partition_spec_to_json
from icebergds.spec.json.schema import schema_to_json
from icebergds.spec.json.sort import sort_order_to_json
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import FORMAT_VERSION
from icebergds.spec.types import LONG, NestedField
from icebergds.spec.updates.requirements import AssertCreate
from icebergds.spec.updates.table_updates import AddSnapshot, TableUpdate

CHOSEN_LATER = "rest-catalog://chosen-when-the-table-is-created"
"""Placeholder for the location of a table that does not exist yet."""


def create(operations: RestTableOperations, updates: Sequence[TableUpdate]) -> TableState:
    """Creates a table; errors are those of `RestCatalog.create`."""
    planned = next_metadata(None, None, updates)
    if any(isinstance(each, AddSnapshot) for each in updates):
        _require_location(operations.name, planned)
        return _create_with_rows(operations, updates, planned)
    return _create_empty(operations, planned)


def stage(
    session: RestSession, io: FileIO, identifier: Identifier, updates: Sequence[TableUpdate]
) -> TableState:
    """A table as the server would create it, with storage for its first files.

    Raises AlreadyExistsError, NoSuchNamespaceError, UnsupportedFeatureError.
    """
    planned = next_metadata(None, None, updates)
    _require_location(named(session.name, identifier), planned)
    staged = _post(session, io, identifier, _table_to_json(identifier, planned, staged=True))
    # Checked before files are written.
    _check_version(named(session.name, identifier), planned, staged.metadata)
    return staged


def new_location(session: RestSession, io: FileIO, identifier: Identifier, kind: str) -> str:
    """The location of a new table or view.

    For a table, the server is asked by staging one. If it does not stage tables, the location is
    under that of the namespace, or else of the warehouse; or else the server chooses it when it
    creates the table.

    Raises:
        NoSuchNamespaceError: the namespace does not exist.
        InvalidOptionError: a view has no such location.
    """
    if kind == "table" and (chosen := _chosen_by_server(session, io, identifier)):
        return chosen
    *namespace, name = identifier
    if root := namespaces.properties(session, tuple(namespace)).get("location"):
        return f"{root.rstrip('/')}/{name}"
    warehouse = session.config.properties.get("warehouse", "")
    if is_absolute(warehouse):
        return "/".join((warehouse.rstrip("/"), *namespace, name))
    if kind == "table":
        return CHOSEN_LATER
    raise InvalidOptionError(
        f"{kind} {named(session.name, identifier)}: its catalog chooses no location for it; give "
        "it a location"
    )


def exists(name: str) -> AlreadyExistsError:
    """The error for a table that cannot be created."""
    return AlreadyExistsError(f"table {name} already exists, or a view with that name")


def missing(name: str) -> NoSuchTableError:
    """The error for a table that does not exist."""
    return NoSuchTableError(f"table {name} does not exist in its catalog")


_ANY_SCHEMA = Schema((NestedField(1, "id", LONG),))


def _chosen_by_server(session: RestSession, io: FileIO, identifier: Identifier) -> str | None:
    body = {
        "name": identifier[-1],
        "schema": schema_to_json(_ANY_SCHEMA),
        "stage-create": True,
        "properties": {},
    }
    try:
        return _post(session, io, identifier, body).metadata.location
    except AlreadyExistsError:
        return None
    except RestError as error:
        # Some servers create tables but do not support staging.
        if error.status is None or (error.status >= 500 and error.status != 501):
            raise
        return None


def _create_with_rows(
    operations: RestTableOperations, updates: Sequence[TableUpdate], planned: TableMetadata
) -> TableState:
    staged = stage(operations.session, operations.io, operations.identifier, updates)
    base = TableState(operations.name, "", planned, staged.io)
    try:
        return operations.send([AssertCreate()], updates, base)
    except CommitConflictError:
        raise exists(operations.name) from None
    except NoSuchTableError:
        raise namespaces.missing(operations.session, operations.identifier[:-1]) from None


def _create_empty(operations: RestTableOperations, planned: TableMetadata) -> TableState:
    session, identifier = operations.session, operations.identifier
    body = _table_to_json(identifier, planned, staged=False)
    try:
        created = _post(session, operations.io, identifier, body)
    except RestError as error:
        if not error.maybe_done:
            raise
        # The server assigns the UUID of a new table, so we cannot recognise a table as ours.
        raise unknown_outcome(f"create table {operations.name}", error) from None
    try:
        _check_version(operations.name, planned, created.metadata)
    except UnsupportedFeatureError as error:
        _drop_again(session, identifier, error)
        raise
    return created


def _post(
    session: RestSession, io: FileIO, identifier: Identifier, body: dict[str, Any]
) -> TableState:
    name, namespace = named(session.name, identifier), identifier[:-1]
    with refusals(
        {
            404: lambda error: namespaces.missing(session, namespace),
            409: lambda error: exists(name),
        }
    ):
        try:
            answer = session.change("POST", session.routes.tables(namespace), body, answered=True)
        except RestError as error:
            # Staging has no effect that others can see.
            error.maybe_done = error.maybe_done and not body["stage-create"]
            raise
        if body["stage-create"]:
            return table_state(session, io, identifier, name, answer)
        with reading_answer():
            return table_state(session, io, identifier, name, answer)


def _table_to_json(
    identifier: Identifier, planned: TableMetadata, *, staged: bool
) -> dict[str, Any]:
    location = {} if planned.location == CHOSEN_LATER else {"location": planned.location}
    return {
        "name": identifier[-1],
        **location,
        "schema": schema_to_json(planned.schema()),
        "partition-spec": partition_spec_to_json(planned.spec()),
        "write-order": sort_order_to_json(planned.sort_order()),
        # Some servers fail without it.
        "stage-create": staged,
        "properties": {**planned.properties, FORMAT_VERSION: str(planned.format_version)},
    }


def _require_location(name: str, planned: TableMetadata) -> None:
    """Checks that the location of a table is known before rows are written for it."""
    if planned.location == CHOSEN_LATER:
        raise UnsupportedFeatureError(
            f"table {name}: its catalog's server cannot create a table together with its first "
            "rows; create it with create_table, and then append"
        )


def _check_version(name: str, planned: TableMetadata, made: TableMetadata) -> None:
    if planned.format_version != made.format_version:
        raise UnsupportedFeatureError(
            f"table {name}: its catalog's server makes a table of format version "
            f"{made.format_version}, although version {planned.format_version} was asked for; the "
            f"table was not created. Ask for format-version = {made.format_version}, or use "
            "another catalog"
        )


def _drop_again(session: RestSession, identifier: Identifier, error: IcebergError) -> None:
    try:
        session.change(
            "DELETE", session.routes.table(identifier), query={"purgeRequested": "false"}
        )
    except IcebergError as failure:
        raise UnsupportedFeatureError(
            f"{error}. It could not be dropped again: {failure}"
        ) from None
