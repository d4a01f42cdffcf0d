"""Defines the protocol of catalogs with SQL functions."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from icebergds.catalog.base import Catalog, Identifier
from icebergds.errors import UnsupportedFeatureError
from icebergds.spec.functions import FunctionMetadata


@runtime_checkable
class FunctionCatalog(Protocol):
    """Functions by identifier; they do not share their names with tables."""

    @property
    def has_functions(self) -> bool:
        """Whether the server supports functions."""
        ...

    def list_functions(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's functions, sorted.

        Raises NoSuchNamespaceError, UnsupportedFeatureError.
        """
        ...

    def load_function(self, identifier: Identifier) -> FunctionMetadata:
        """A function with all of its definitions.

        Raises NoSuchFunctionError, NoSuchNamespaceError, UnsupportedFeatureError.
        """
        ...


def has_functions(catalog: Catalog) -> bool:
    """Whether a catalog has functions."""
    return isinstance(catalog, FunctionCatalog) and catalog.has_functions


def functions_of(catalog: Catalog) -> FunctionCatalog:
    """The functions of a catalog.

    Raises:
        UnsupportedFeatureError: the catalog does not support functions.
    """
    if isinstance(catalog, FunctionCatalog):
        return catalog
    raise UnsupportedFeatureError(
        f"catalog {catalog.name} has no functions: only REST catalogs have them, if their server "
        "supports it"
    )
