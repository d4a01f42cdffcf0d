"""Loads, creates, changes and drops the views of a REST catalog."""

from __future__ import annotations

from collections.abc import Sequence

from icebergds.catalog.base import Identifier
from icebergds.catalog.rest import namespaces
from icebergds.catalog.rest.config import (
    CREATE_VIEW,
    DROP_VIEW,
    LIST_VIEWS,
    LOAD_VIEW,
    RENAME_VIEW,
    UPDATE_VIEW,
)
from icebergds.catalog.rest.failures import (
    RestError,
    reading_answer,
    refusals,
    settle,
    unknown_outcome,
)
from icebergds.catalog.rest.http import Answer
from icebergds.catalog.rest.known_parts import without_known_view_parts
from icebergds.catalog.rest.labels import labels_in
from icebergds.catalog.rest.namespaces import listed
from icebergds.catalog.rest.session import RestSession
from icebergds.catalog.rest.tables import named, renaming
from icebergds.catalog.views import ViewState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    IcebergError,
    NoSuchNamespaceError,
    NoSuchViewError,
)
from icebergds.spec.json.fields import required
from icebergds.spec.json.schema import schema_to_json
from icebergds.spec.values.dates import now_ms
from icebergds.spec.views.json import (
    view_metadata_from_json,
    view_update_to_json,
    view_version_to_json,
)
from icebergds.spec.views.updates import ViewUpdate, apply_view_updates

# Because of the current state of the view.
_REFUSED = (400, 409)


def load(session: RestSession, identifier: Identifier) -> ViewState:
    """The current state of a view. Raises NoSuchViewError, UnsupportedFeatureError."""
    _require(session, LOAD_VIEW)
    with refusals({404: lambda error: _missing(session, identifier)}):
        answer = session.client.get(session.routes.loaded_view(identifier))
    return state_in(session, identifier, answer)


def create(
    session: RestSession, identifier: Identifier, updates: Sequence[ViewUpdate]
) -> ViewState:
    """Creates a view; errors are those of `ViewCatalog.create_view`."""
    _require(session, CREATE_VIEW)
    planned = apply_view_updates(None, updates, now_ms=now_ms())
    name, namespace = named(session.name, identifier), identifier[:-1]
    body = {
        "name": identifier[-1],
        "location": planned.location,
        "schema": schema_to_json(planned.schema()),
        "view-version": view_version_to_json(planned.current_version()),
        "properties": dict(planned.properties),
    }
    with refusals(
        {
            404: lambda error: namespaces.missing(session, namespace),
            409: lambda error: exists(name),
        }
    ):
        try:
            answer = session.change("POST", session.routes.views(namespace), body, answered=True)
            with reading_answer():
                return state_in(session, identifier, answer)
        except RestError as error:
            if not error.maybe_done:
                raise
            # The server assigns the UUID of a new view, so we cannot recognise a view as ours.
            raise unknown_outcome(f"create view {name}", error) from None


def commit(
    session: RestSession,
    identifier: Identifier,
    base: ViewState,
    updates: Sequence[ViewUpdate],
) -> ViewState:
    """Changes a view; errors are those of `ViewCatalog.commit_view`."""
    _require(session, UPDATE_VIEW)
    changed = apply_view_updates(base.metadata, updates, now_ms=now_ms())
    current = load(session, identifier)
    if current.metadata_location != base.metadata_location:
        raise CommitConflictError(
            f"view {base.name} was changed by another commit: it is no longer at "
            f"{base.metadata_location}, on which this commit is based"
        )
    if changed is base.metadata:
        return base
    uuid = {"type": "assert-view-uuid", "uuid": base.metadata.view_uuid}
    sent = without_known_view_parts(updates, base.metadata, changed)
    body = {"requirements": [uuid], "updates": [view_update_to_json(each) for each in sent]}
    with refusals(
        {
            404: lambda error: _missing(session, identifier),
            409: lambda error: CommitConflictError(
                f"view {base.name} was changed by another commit: "
                f"{error.explanation or error.reason}"
            ),
        }
    ):
        try:
            answer = session.change("POST", session.routes.view(identifier), body, answered=True)
            with reading_answer():
                return state_in(session, identifier, answer)
        except RestError as error:
            found = load(session, identifier) if error.status in _REFUSED else None
            if found is not None and _is_in_effect(updates, base, found):
                # A proxy sent it twice, and it conflicted with itself.
                return found
            settle(
                f"commit to view {base.name}",
                error,
                lambda: _is_in_effect(updates, base, load(session, identifier)),
            )
            return load(session, identifier)


def drop(session: RestSession, identifier: Identifier) -> None:
    """Drops a view. Raises NoSuchViewError, UnsupportedFeatureError."""
    _require(session, DROP_VIEW)
    with refusals({404: lambda error: _missing(session, identifier)}):
        try:
            session.change("DELETE", session.routes.view(identifier))
        except RestError as error:
            settle(
                f"drop view {named(session.name, identifier)}",
                error,
                lambda: not _has(session, identifier),
            )


def rename(session: RestSession, source: Identifier, target: Identifier) -> None:
    """Renames a view; errors are those of `ViewCatalog.rename_view`."""
    _require(session, RENAME_VIEW)
    old, new = named(session.name, source), named(session.name, target)
    if source == target:
        # Servers differ in their answers.
        load(session, source)
        raise AlreadyExistsError(f"view {old} cannot be renamed: {new} exists")

    def missing(error: RestError) -> IcebergError:
        if error.kind == "NoSuchNamespaceException" or _has(session, source):
            return namespaces.missing(session, target[:-1])
        return _missing(session, source)

    with refusals(
        {
            404: missing,
            409: lambda error: AlreadyExistsError(f"view {old} cannot be renamed: {new} exists"),
        }
    ):
        try:
            session.change("POST", session.routes.rename_view(), renaming(source, target))
        except RestError as error:
            settle(
                f"rename view {old}",
                error,
                lambda: not _has(session, source) and _has(session, target),
            )


def list_in(session: RestSession, namespace: Identifier) -> list[Identifier]:
    """Identifiers of a namespace's views, sorted. Raises NoSuchNamespaceError."""
    _require(session, LIST_VIEWS)
    if not namespace:
        return []
    with refusals({404: lambda error: namespaces.missing(session, namespace)}):
        return listed(session, session.routes.views(namespace), "identifiers")


def state_in(session: RestSession, identifier: Identifier, answer: Answer) -> ViewState:
    """The state of a view in an answer. Raises InvalidMetadataError."""
    name = named(session.name, identifier)
    where = f"the answer for view {name}"
    location = required(answer.body, "metadata-location", str, where)
    metadata = view_metadata_from_json(required(answer.body, "metadata", dict, where), location)
    return ViewState(name, location, metadata, labels_in(answer.body, where))


def exists(name: str) -> AlreadyExistsError:
    """The error for a view that cannot be created."""
    return AlreadyExistsError(f"view {name} already exists, or a table with that name")


def _require(session: RestSession, endpoint: str) -> None:
    session.config.require(session.name, endpoint, "this for views")


def _missing(session: RestSession, identifier: Identifier) -> NoSuchViewError:
    return NoSuchViewError(f"view {named(session.name, identifier)} does not exist in its catalog")


def _has(session: RestSession, identifier: Identifier) -> bool:
    try:
        load(session, identifier)
    except (NoSuchViewError, NoSuchNamespaceError):
        return False
    return True


def _is_in_effect(updates: Sequence[ViewUpdate], base: ViewState, state: ViewState) -> bool:
    """Whether a view has updates that were based on `base`; it may be another view of that name."""
    if state.metadata.view_uuid != base.metadata.view_uuid:
        return False
    changed = apply_view_updates(state.metadata, updates, now_ms=now_ms())
    return changed is state.metadata
