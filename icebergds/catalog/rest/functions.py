"""Lists and loads the SQL functions of a REST catalog."""

from __future__ import annotations

from icebergds.catalog.base import Identifier
from icebergds.catalog.rest import namespaces
from icebergds.catalog.rest.config import LIST_FUNCTIONS, LOAD_FUNCTION
from icebergds.catalog.rest.failures import RestError, refusals
from icebergds.catalog.rest.namespaces import listed
from icebergds.catalog.rest.session import RestSession
from icebergds.catalog.rest.tables import named
from icebergds.errors import IcebergError, NoSuchFunctionError
from icebergds.spec.functions import FunctionMetadata
from icebergds.spec.json.fields import required
from icebergds.spec.json.functions import function_metadata_from_json
from icebergds.suggestions import did_you_mean


def are_supported(session: RestSession) -> bool:
    """Whether the server has functions."""
    return session.config.supports(session.name, LOAD_FUNCTION)


def list_in(session: RestSession, namespace: Identifier) -> list[Identifier]:
    """Identifiers of a namespace's functions; errors are those of `FunctionCatalog`."""
    session.config.require(session.name, LIST_FUNCTIONS, "listing functions")
    if not namespace:
        return []
    with refusals({404: lambda error: namespaces.missing(session, namespace)}):
        return listed(session, session.routes.functions(namespace), "identifiers")


def load(session: RestSession, identifier: Identifier) -> FunctionMetadata:
    """A function; errors are those of `FunctionCatalog`."""
    session.config.require(session.name, LOAD_FUNCTION, "loading functions")
    name = named(session.name, identifier)

    def missing(error: RestError) -> IcebergError:
        if error.kind == "NoSuchNamespaceException":
            return namespaces.missing(session, identifier[:-1])
        try:
            known = [last for *_, last in list_in(session, identifier[:-1])]
        except IcebergError:
            known = []
        near = did_you_mean(identifier[-1], known)
        hint = f"; {near}" if near else ""
        return NoSuchFunctionError(f"function {name} does not exist in its catalog{hint}")

    with refusals({404: missing}):
        answer = session.client.get(session.routes.function(identifier))
    where = f"the answer for function {name}"
    metadata = required(answer.body, "metadata", dict, where)
    return function_metadata_from_json(metadata, f"the metadata of function {name}")
