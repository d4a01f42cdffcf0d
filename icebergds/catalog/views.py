"""Defines the protocols of catalogs with views and with SQL functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from icebergds.catalog.base import Catalog, Identifier
from icebergds.errors import (
    IcebergError,
    NoSuchTableError,
    NoSuchViewError,
    UnsupportedFeatureError,
)
from icebergds.expr.names import quote_name
from icebergds.spec.functions import FunctionMetadata
from icebergds.spec.labels import NO_LABELS, Labels
from icebergds.spec.views.metadata import ViewMetadata
from icebergds.spec.views.updates import ViewUpdate


@dataclass(frozen=True, slots=True)
class ViewState:
    """A view as a catalog loaded it.

    Attributes:
        name: the view's name in messages.
        metadata_location: the location of the metadata file, from the catalog.
        labels: what the catalog's server says of it beside the metadata.
    """

    name: str
    metadata_location: str
    metadata: ViewMetadata
    labels: Labels = field(default=NO_LABELS, compare=False, repr=False)


@runtime_checkable
class ViewCatalog(Protocol):
    """Views by identifier; they share their names with tables."""

    def load_view(self, identifier: Identifier) -> ViewState:
        """The current state of a view.

        Raises:
            NoSuchViewError: there is no such view.
        """
        ...

    def create_view(self, identifier: Identifier, updates: Sequence[ViewUpdate]) -> ViewState:
        """Creates a view by applying updates.

        Raises:
            AlreadyExistsError: a view or table with this name exists.
            NoSuchNamespaceError: its namespace does not exist.
            CommitStateUnknownError: it is unknown whether the view was created.
        """
        ...

    def commit_view(
        self, identifier: Identifier, base: ViewState, updates: Sequence[ViewUpdate]
    ) -> ViewState:
        """Applies updates to a view in one atomic swap, if it is still in the state of `base`.

        Raises:
            NoSuchViewError: the view does not exist (any more).
            CommitConflictError: another commit came first; load the view and try again.
            CommitStateUnknownError: it is unknown whether it was committed.
        """
        ...

    def drop_view(self, identifier: Identifier) -> None:
        """Drops a view; its metadata files stay. Raises NoSuchViewError."""
        ...

    def rename_view(self, source: Identifier, target: Identifier) -> None:
        """Renames a view.

        Raises NoSuchViewError, AlreadyExistsError, NoSuchNamespaceError.
        """
        ...

    def list_views(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's views, sorted. Raises NoSuchNamespaceError."""
        ...

    def new_view_location(self, identifier: Identifier) -> str:
        """The location of a view that is created without one."""
        ...


@runtime_checkable
class RegisteringViews(Protocol):
    """A catalog that can add existing views."""

    def register_view(self, identifier: Identifier, metadata_location: str) -> ViewState:
        """Adds an existing view by its metadata file.

        Raises:
            AlreadyExistsError: a view or table with this name exists.
            NoSuchNamespaceError: its namespace does not exist.
            UnsupportedFeatureError: the server does not support this.
            CommitStateUnknownError: it is unknown whether the view was registered.
        """
        ...


def views_of(catalog: Catalog) -> ViewCatalog:
    """The views of a catalog.

    Raises:
        UnsupportedFeatureError: the catalog does not support views.
    """
    if isinstance(catalog, ViewCatalog):
        return catalog
    raise UnsupportedFeatureError(
        f"catalog {catalog.name} has no views: only REST and SQL catalogs have them; create a "
        "table in its place, or a temporary view of Spark, or use another catalog: one in a file "
        "(uri='sqlite:///catalog.db') has views"
    )


def is_view(catalog: Catalog, identifier: Identifier) -> bool:
    """Whether a catalog has a view of this name, as far as can be determined."""
    if not isinstance(catalog, ViewCatalog):
        return False
    try:
        catalog.load_view(identifier)
    except IcebergError:
        return False
    return True


@contextmanager
def no_view(catalog: Catalog, identifier: Identifier, instead: str) -> Iterator[None]:
    """If a table does not exist in the block, adds to the error that it is a view, if it is.

    Args:
        instead: what to do, such as `drop it with drop_view`.
    """
    try:
        yield
    except NoSuchTableError:
        if is_view(catalog, identifier):
            raise NoSuchTableError(view_not_table(catalog, identifier, instead)) from None
        raise


@contextmanager
def no_table(catalog: Catalog, identifier: Identifier, instead: str) -> Iterator[None]:
    """If a view does not exist in the block, adds to the error that it is a table, if it is."""
    try:
        yield
    except NoSuchViewError:
        try:
            catalog.load(identifier)
            found = True
        except IcebergError:
            found = False
        if found:
            name = quote_name((catalog.name, *identifier))
            raise NoSuchViewError(f"{name} is a table, not a view; {instead}") from None
        raise


def view_not_table(
    catalog: Catalog, identifier: Identifier, instead: str = "load it with load_view"
) -> str:
    """The message for a view that is used as a table."""
    return f"{quote_name((catalog.name, *identifier))} is a view, not a table; {instead}"


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
