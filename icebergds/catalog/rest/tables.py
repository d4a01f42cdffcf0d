"""Creates a table's state from the server's answer (REST catalog: `LoadTableResult`)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from icebergds.catalog.base import Identifier
from icebergds.catalog.metadata_files import log_load
from icebergds.catalog.rest.config import CREDENTIALS
from icebergds.catalog.rest.failures import RestError, refusals
from icebergds.catalog.rest.http import Answer
from icebergds.catalog.rest.labels import labels_in
from icebergds.catalog.rest.metrics import server_reporter
from icebergds.catalog.rest.options import ALL, REFS
from icebergds.catalog.rest.scan_planning import scan_planner
from icebergds.catalog.rest.session import RestSession
from icebergds.catalog.rest.table_access import table_config
from icebergds.commit.operations import TableState
from icebergds.errors import InvalidMetadataError, NoSuchTableError
from icebergds.expr.names import quote_name
from icebergds.io.fileio import FileIO
from icebergds.io.vended_credentials import (
    PrefixCredentials,
    Vended,
    VendedCredentials,
    renewed,
)
from icebergds.spec.json.fields import optional, required, string_map, typed
from icebergds.spec.json.metadata import metadata_from_json
from icebergds.spec.lazy_snapshots import LazySnapshots
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot

_MEMBER = "read-restrictions"
_FILTER = "required-row-filter"
_PROJECTIONS = "required-column-projections"


def _has_read_restrictions(body: Mapping[str, Any]) -> bool:
    """Whether an answer has read restrictions, even if they allow everything."""
    return body.get(_MEMBER) is not None


def _read_refusal(body: Mapping[str, Any], metadata: TableMetadata, name: str, where: str) -> str:
    """Why the rows of a table must not be read; empty if there are no restrictions.

    A reader that cannot apply all restrictions must fail (REST catalog specification:
    `ReadRestrictions`), and this package applies none.

    Args:
        body: of the answer.
        metadata: of the table, which names the columns.
        name: the table's name in messages.
        where: names the answer in messages.

    Raises:
        InvalidMetadataError: the restrictions are malformed.
    """
    given = optional(body, _MEMBER, dict, where) or {}
    where = f"{_MEMBER!r} of {where}"
    found = [*_of_rows(given, metadata), *_of_columns(given, metadata, where)]
    known = (_FILTER, _PROJECTIONS)
    found += [repr(key) for key, value in given.items() if key not in known and value]
    if not found:
        return ""
    return (
        f"table {name}: its catalog restricts what this user may read of it: {'; '.join(found)}. "
        "icebergds does not enforce such restrictions, so it neither reads rows of the table nor "
        "metadata that tells of them; read it with an engine that enforces them, or as a user "
        "without restrictions"
    )


def _of_rows(given: Mapping[str, Any], metadata: TableMetadata) -> Iterator[str]:
    condition = given.get(_FILTER)
    if condition is None or _is_always_true(condition):
        return
    names = ", ".join(dict.fromkeys(_columns_of(condition, metadata)))
    yield f"a filter of rows by {names}" if names else "a filter of rows"


def _is_always_true(condition: Any) -> bool:
    match condition:
        case bool():
            return condition
        case {"type": "true"} | {"type": "literal", "value": True}:
            return True
    return False


def _columns_of(condition: Any, metadata: TableMetadata) -> Iterator[str]:
    """The columns that a predicate refers to, by id or, in the older form, by name."""
    waiting = [condition]
    while waiting:
        match waiting.pop():
            case {"type": "reference", "id": int(field_id)}:
                yield _column(field_id, metadata)
            case {"type": "reference", "term": str(name)} | {"term": str(name)}:
                yield name
            case dict(members):
                waiting += reversed(members.values())
            case list(members):
                waiting += reversed(members)


def _of_columns(given: Mapping[str, Any], metadata: TableMetadata, where: str) -> Iterator[str]:
    for member in optional(given, _PROJECTIONS, list, where) or ():
        each = typed(member, dict, f"a member of {_PROJECTIONS!r} in {where}")
        column = _column(required(each, "field-id", int, where), metadata)
        yield f"column {column} by the action {required(each, 'action', str, where)}"


def _column(field_id: int, metadata: TableMetadata) -> str:
    schemas = (metadata.schema(), *reversed(metadata.schemas))
    names = (schema.find_name(field_id) for schema in schemas)
    return next((name for name in names if name is not None), f"with the field id {field_id}")


_LOG = logging.getLogger(__name__)

_NOT_MODIFIED = 304
_BAD_REQUEST = 400


def load_table(
    session: RestSession, io: FileIO, identifier: Identifier, name: str, *, whole: bool = False
) -> TableState:
    """The current state of a table.

    If this process has loaded it before, it asks only for a changed table.

    Args:
        io: the storage of the catalog's tables.
        name: the table's name in messages.
        whole: load all snapshots, even if the catalog loads some lazily. Servers may leave out what
            belongs to those, such as their statistics.

    Raises:
        NoSuchTableError: there is no such table.
        InvalidMetadataError: the answer is malformed.
        StorageError: the server does not answer, or refuses to.
    """
    started = time.perf_counter()
    path = session.routes.loaded_table(identifier)
    snapshots = ALL if whole else session.snapshots
    seen = _usable(session, path) if snapshots == session.snapshots else None
    headers = {} if seen is None else {"If-None-Match": seen[0]}

    def missing(error: RestError) -> NoSuchTableError:
        session.seen.forget(session.routes.table(identifier))
        return NoSuchTableError(f"table {name} does not exist in its catalog")

    try:
        with refusals({404: missing}):
            answer = session.client.get(path, {"snapshots": snapshots}, headers)
    except RestError as error:
        if snapshots == REFS and error.status == _BAD_REQUEST:
            # Java Iceberg's servers fail to leave out snapshots with statistics.
            _LOG.info("%s; all snapshots are loaded", error)
            return load_table(session, io, identifier, name, whole=True)
        raise
    if answer.status == _NOT_MODIFIED and seen is not None:
        return _at(io, seen[1])
    state = table_state(session, io, identifier, name, answer)
    if snapshots == REFS:
        state = _lazy(session, identifier, state)
    if snapshots == session.snapshots:
        session.seen.keep(path, answer, state)
    log_load(name, state.metadata_location, state.metadata, started)
    return state


def last_seen(session: RestSession, io: FileIO, identifier: Identifier) -> TableState | None:
    """The state of a table that this process loaded last; None if it has not loaded it."""
    seen = _usable(session, session.routes.loaded_table(identifier))
    return None if seen is None else _at(io, seen[1])


def table_state(
    session: RestSession,
    io: FileIO,
    identifier: Identifier,
    name: str,
    answer: Answer,
    before: FileIO | None = None,
) -> TableState:
    """The state of a table in an answer, with storage that uses the credentials in it.

    Args:
        before: the table's storage so far; its credentials and restrictions still hold if answers
            of this kind have none.

    Raises:
        InvalidMetadataError: the answer is malformed.
    """
    where = f"the answer for table {name}"
    location = optional(answer.body, "metadata-location", str, where) or ""
    document = required(answer.body, "metadata", dict, where)
    metadata = metadata_from_json(document, location or where)
    config = table_config(session, identifier, answer.body, io.properties, where)
    vended = _vended(answer.body, config.properties, where)
    if vended:
        renew = _renewing(session, identifier, name, config.properties, io.properties)
        io = replace(io, vended=VendedCredentials(vended, renew, config.signer))
    elif before is not None:
        io = replace(io, vended=before.vended)
    if before is not None and not _has_read_restrictions(answer.body):
        refused = before.rows_refused
    else:
        refused = _read_refusal(answer.body, metadata, name, where)
    io = replace(io, rows_refused=refused)
    planner = scan_planner(session, identifier, name, string_map(answer.body, "config", where))
    reporter = server_reporter(session, identifier, name)
    labels = labels_in(answer.body, where)
    return TableState(name, location, metadata, io, planner, reporter, labels)


def _lazy(session: RestSession, identifier: Identifier, state: TableState) -> TableState:
    """A state that loads snapshots without a branch or tag when they are needed."""
    name, metadata = state.name, state.metadata

    def load() -> tuple[Snapshot, ...]:
        def missing(error: RestError) -> NoSuchTableError:
            return NoSuchTableError(f"table {name} was dropped since it was loaded")

        with refusals({404: missing}):
            answer = session.client.get(session.routes.loaded_table(identifier), {"snapshots": ALL})
        where = f"the answer for table {name}"
        location = optional(answer.body, "metadata-location", str, where)
        found = metadata_from_json(required(answer.body, "metadata", dict, where), where)
        if found.table_uuid != metadata.table_uuid:
            raise NoSuchTableError(
                f"table {name} was replaced by another table since it was loaded; load it again"
            )
        is_same = bool(location) and location == state.metadata_location
        return tuple(found.snapshots) if is_same else _as_of(metadata, found)

    return replace(
        state, metadata=replace(metadata, snapshots=LazySnapshots(metadata.snapshots, load))
    )


def _as_of(metadata: TableMetadata, later: TableMetadata) -> tuple[Snapshot, ...]:
    """The snapshots of a table at one version, from that version's and a later version's.

    Snapshots that expired in between are missing, except the version's own.
    """
    own = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    before = _numbered_before if metadata.format_version > 1 else _known_before
    past = {snapshot.snapshot_id: snapshot for snapshot in before(metadata, later)}
    return tuple({**past, **own}.values())


def _numbered_before(metadata: TableMetadata, later: TableMetadata) -> Iterator[Snapshot]:
    return (s for s in later.snapshots if s.sequence_number <= metadata.last_sequence_number)


def _known_before(metadata: TableMetadata, later: TableMetadata) -> Iterator[Snapshot]:
    """The snapshots of a version 1 table, which have no sequence numbers.

    Writers' clocks differ, so that comparing times alone misses some: a time only decides for
    snapshots that are neither in the version's log nor ancestors of its own snapshots.
    """
    logged = {entry.snapshot_id for entry in metadata.snapshot_log}
    ancestors: set[int] = set()
    for snapshot in metadata.snapshots:
        parent_id = snapshot.parent_snapshot_id
        while parent_id is not None and parent_id not in ancestors:
            ancestors.add(parent_id)
            parent = later.snapshot_by_id(parent_id)
            parent_id = None if parent is None else parent.parent_snapshot_id
    for snapshot in later.snapshots:
        is_known = snapshot.snapshot_id in ancestors or snapshot.snapshot_id in logged
        if is_known or snapshot.timestamp_ms <= metadata.last_updated_ms:
            yield snapshot


def _vended(body: Mapping[str, Any], config: Mapping[str, str], where: str) -> Vended:
    """The credentials in an answer, combined with the properties from loading the table."""
    found = [
        PrefixCredentials(each.prefix, {**config, **each.properties})
        for each in _by_prefix(body, where)
    ]
    return [*([PrefixCredentials("", config)] if config else []), *found]


def _by_prefix(body: Mapping[str, Any], where: str) -> Vended:
    members = optional(body, "storage-credentials", list, where) or ()
    return [
        PrefixCredentials(
            required(member, "prefix", str, where), string_map(member, "config", where)
        )
        for member in (typed(each, dict, f"a storage credential of {where}") for each in members)
    ]


def _renewing(
    session: RestSession,
    identifier: Identifier,
    name: str,
    config: Mapping[str, str],
    own: Mapping[str, str],
) -> Callable[[], Vended]:
    """Returns a function that gets new credentials from their endpoint, or by loading the table."""

    def renew() -> Vended:
        where = f"the answer for table {name}"
        if session.config.supports(session.name, CREDENTIALS):
            answer = session.client.get(session.routes.credentials(identifier))
            found = _by_prefix(answer.body, where)
            if not found:
                raise InvalidMetadataError(f"{where} has no new credentials")
            return renewed(config, found)
        answer = session.client.get(session.routes.loaded_table(identifier), {"snapshots": "refs"})
        loaded = table_config(session, identifier, answer.body, own, where)
        return _vended(answer.body, loaded.properties, where)

    return renew


def _usable(session: RestSession, path: str) -> tuple[str, TableState] | None:
    """The ETag and state of a table that this process has loaded.

    None if its credentials expire soon: an unchanged table would come without new ones.
    """
    seen = session.seen.find(path)
    if seen is None:
        return None
    vended = seen[1].io.vended
    return None if vended is not None and vended.expires_soon else seen


def _at(io: FileIO, seen: TableState) -> TableState:
    """A state with a catalog object's storage, but its own credentials and restrictions."""
    came = seen.io
    return replace(seen, io=replace(io, vended=came.vended, rows_refused=came.rows_refused))


def named(catalog: str, identifier: Identifier) -> str:
    """The name of a table, view or namespace in messages."""
    return quote_name((catalog, *identifier))


def renaming(source: Identifier, target: Identifier) -> dict[str, Any]:
    """The body of a request that renames a table or view."""
    return {
        role: {"namespace": list(identifier[:-1]), "name": identifier[-1]}
        for role, identifier in (("source", source), ("destination", target))
    }
