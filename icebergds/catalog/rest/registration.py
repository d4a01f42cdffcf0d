"""Registers existing tables and views in a REST catalog, and unregisters tables."""

from __future__ import annotations

from icebergds.catalog.base import Identifier
from icebergds.catalog.rest import creation, namespaces, views
from icebergds.catalog.rest.config import REGISTER, REGISTER_VIEW, UNREGISTER
from icebergds.catalog.rest.failures import (
    RestError,
    reading_answer,
    refusals,
    settle,
    unknown_outcome,
)
from icebergds.catalog.rest.operations import RestTableOperations
from icebergds.catalog.rest.session import RestSession
from icebergds.catalog.rest.tables import load_table, named, table_state
from icebergds.catalog.views import ViewState
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    FormatError,
    IcebergError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.json.fields import required


def register(
    session: RestSession, io: FileIO, identifier: Identifier, location: str, *, overwrite: bool
) -> TableState:
    """Adds an existing table by its metadata file, which the server must be able to read.

    Args:
        location: of the metadata file.
        overwrite: replace a table of this name.

    Errors are those of `RestCatalog.register` and `OverwritingCatalog.register_over`.
    """
    namespace, name = identifier[:-1], named(session.name, identifier)
    session.config.require(session.name, REGISTER, "registering tables")
    body = {
        "name": identifier[-1],
        "metadata-location": location,
        **({"overwrite": True} if overwrite else {}),
    }

    def exists(error: RestError) -> IcebergError:
        if not overwrite:
            return creation.exists(name)
        return AlreadyExistsError(
            f"table {name} was not replaced: {error.explanation or error.reason}. Either a view "
            "has its name, or the server does not support overwrite"
        )

    def unsupported(error: RestError) -> IcebergError:
        if not overwrite:
            return error
        return UnsupportedFeatureError(
            f"table {name} was not replaced: the catalog's server cannot register a table with "
            f"overwrite ({error.explanation or error.reason}); drop it with drop_table, which "
            "keeps its files, and then register it"
        )

    with refusals(
        {
            404: lambda error: _missing(session, namespace, f"table {name}", location, error),
            406: unsupported,
            409: exists,
            501: unsupported,
        }
    ):
        try:
            path = session.routes.register(namespace)
            answer = session.change("POST", path, body, answered=True)
            with reading_answer():
                return table_state(session, io, identifier, name, answer)
        except RestError as error:
            settle(
                f"register table {name}",
                error,
                lambda: load_table(session, io, identifier, name).metadata_location == location,
            )
            return load_table(session, io, identifier, name)
        finally:
            session.seen.forget(session.routes.table(identifier))


def unregister(operations: RestTableOperations) -> str:
    """Removes a table; errors are those of `UnregisteringCatalog.unregister`."""
    session, name = operations.session, operations.name
    session.config.require(
        session.name,
        UNREGISTER,
        "unregistering tables; drop_table keeps their files, too, but a commit of somebody else "
        "may come between reading a table's metadata_location and dropping it",
    )
    try:
        seen = operations.refresh().metadata_location
    except FormatError:
        seen = ""
    path = session.routes.unregister(operations.identifier)
    with refusals({404: lambda error: creation.missing(name)}):
        try:
            answer = session.change("POST", path, answered=True)
            with reading_answer():
                return required(answer.body, "metadata-location", str, f"the answer for {name}")
        except RestError as error:
            if not error.maybe_done:
                raise
            # A table that is gone does not tell which its last metadata file was.
            last = f", which was at {seen} just before" if seen else ""
            raise unknown_outcome(f"unregister table {name}{last}", error) from None
        finally:
            session.seen.forget(session.routes.table(operations.identifier))


def register_view(session: RestSession, identifier: Identifier, location: str) -> ViewState:
    """Adds an existing view; errors are those of `RegisteringViews.register_view`.

    Args:
        location: of the metadata file.
    """
    namespace, name = identifier[:-1], named(session.name, identifier)
    session.config.require(session.name, REGISTER_VIEW, "registering views")
    body = {"name": identifier[-1], "metadata-location": location}
    with refusals(
        {
            404: lambda error: _missing(session, namespace, f"view {name}", location, error),
            409: lambda error: views.exists(name),
        }
    ):
        try:
            path = session.routes.register_view(namespace)
            answer = session.change("POST", path, body, answered=True)
            with reading_answer():
                return views.state_in(session, identifier, answer)
        except RestError as error:
            settle(
                f"register view {name}",
                error,
                lambda: views.load(session, identifier).metadata_location == location,
            )
            return views.load(session, identifier)


def _missing(
    session: RestSession, namespace: Identifier, what: str, location: str, error: RestError
) -> IcebergError:
    """The error if the server does not find what it needs to register something."""
    if error.kind == "NotFoundException":
        return MissingFileError(
            f"{what} cannot be registered: the catalog's server finds no metadata file {location}"
        )
    return namespaces.missing(session, namespace)
