"""Addresses a table by its location, a metadata file, or an identifier in a catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icebergds.catalog.base import Catalog, Identifier, ServedCatalog, StagingCatalog
from icebergds.catalog.config import catalog_properties
from icebergds.catalog.filesystem.commits import (
    check_creation_at,
    create_at_location,
    location_operations,
)
from icebergds.catalog.loading import load_catalog
from icebergds.catalog.metadata_files import is_metadata_file, load_from_location
from icebergds.catalog.naming import (
    catalog_hint,
    default_hint,
    named_catalog,
)
from icebergds.catalog.views import is_view, view_not_table
from icebergds.commit.operations import TableOperations, TableState
from icebergds.encryption.kms import is_of_key_service, load_kms
from icebergds.errors import InvalidFilterError, InvalidOptionError, NoSuchTableError
from icebergds.expr.names import split_name
from icebergds.io.fileio import FileIO
from icebergds.io.kept_reads import recent_reads
from icebergds.io.known_properties import warn_of_names
from icebergds.io.storage_options import is_of_storage, storage_properties_of
from icebergds.spec.updates.table_updates import TableUpdate


@dataclass(frozen=True, slots=True)
class TableAddress:
    """The address of a table, valid in any process.

    Attributes:
        path: a location or a metadata file; with `catalog`, an identifier such as `db.table`.
        catalog: the name of the catalog.
        catalog_properties: `type`, `warehouse` and other properties of the catalog; without
            `catalog`, those of a key service, such as `encryption.kms-type`.
        storage_properties: properties of the storage, such as `s3.endpoint`.
        location_map: maps prefixes of locations to their replacements.

    Raises:
        InvalidOptionError: there are catalog properties but no catalog.
    """

    path: str
    catalog: str | None = None
    catalog_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    storage_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    location_map: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = [name for name in self.catalog_properties if not is_of_key_service(name)]
        if self.catalog is None and found:
            names = ", ".join(found)
            one = len(found) == 1
            raise InvalidOptionError(
                f"{names} {'is a property' if one else 'are properties'} of a catalog, but no "
                "catalog is given: set option('catalog', '<name>') or catalog='<name>'"
            )

    @property
    def is_metadata_file(self) -> bool:
        """Whether this is one state of a table, which never changes."""
        return self.catalog is None and is_metadata_file(self.path)

    def load(self) -> TableState:
        """The table's current state.

        Raises:
            NoSuchTableError: there is no such table.
            InvalidMetadataError: its metadata is damaged.
            UnsupportedFeatureError: its format version is above 3.
        """
        if self.catalog is None:
            try:
                return load_from_location(self._io(), self.path)
            except NoSuchTableError as error:
                raise NoSuchTableError(self.with_catalog_hint(str(error))) from None
        return self._loaded(self._load_catalog())

    def with_catalog_hint(self, message: str) -> str:
        """A missing-table message, with a hint if the path may name a catalog's table or a view."""
        if self.catalog is not None:
            catalog, identifier = self._load_catalog(), self._identifier()
            return view_not_table(catalog, identifier) if is_view(catalog, identifier) else message
        hint = catalog_hint(self.path)
        if not hint:
            return message
        return f"{message}; if {self.path} is the name of a catalog's table, {hint}"

    def open(self) -> tuple[TableState, TableOperations | None]:
        """The table's current state, and operations that commit to it from this process.

        The operations are None for a metadata file, which never changes. Errors are those of
        `load`.
        """
        if self.catalog is not None:
            catalog = self._load_catalog()
            return self._loaded(catalog), catalog.operations(self._identifier())
        state = load_from_location(self._io(), self.path)
        return state, None if self.is_metadata_file else self.operations()

    def operations(self) -> TableOperations:
        """The operations that load and commit the table, which need not exist yet.

        Raises:
            InvalidOptionError: the address is a metadata file, which cannot be changed.
        """
        if self.catalog is None:
            return location_operations(self._io(), self.path, self.path)
        return self._load_catalog().operations(self._identifier())

    def new_location(self, chosen: str | None) -> str:
        """The location at which the table would be created.

        Args:
            chosen: the location that the user asks for; None for the address or the catalog's
                default.

        Raises:
            NoSuchNamespaceError: the catalog requires namespaces, and the table's does not exist.
            InvalidOptionError: `chosen` differs from the address, if that is a location, or the
                catalog does not allow it; or the path looks like the name of a catalog's table.
            UnsupportedFeatureError: the storage does not support commits.
        """
        io = self._io()
        if self.catalog is not None:
            catalog, identifier = self._load_catalog(), self._identifier()
            location = (
                catalog.new_table_location(identifier) if chosen is None else io.absolute(chosen)
            )
            catalog.check_creation(identifier, location)
            return location
        if hint := catalog_hint(self.path):
            raise InvalidOptionError(
                f"path {self.path!r} looks like the name of a catalog's table, but no catalog is "
                f"given: {hint}, or write './{self.path}' to create the table in a directory of "
                "this name"
            )
        location = io.absolute(self.path).rstrip("/")
        if chosen is not None and io.resolve(chosen).rstrip("/") != io.resolve(location):
            raise InvalidOptionError(
                f"option 'location' = {chosen!r} contradicts the location {self.path!r}, by which "
                "the table is addressed; leave the option out, or use a catalog"
            )
        check_creation_at(io, location, location, self.path)
        return location

    def all_catalog_properties(self) -> Mapping[str, str]:
        """The catalog's properties from all sources, also its server; empty without a catalog."""
        if self.catalog is None:
            return {}
        catalog = self._load_catalog()
        if isinstance(catalog, ServedCatalog):
            return catalog.properties
        return catalog_properties(self.catalog, self._properties_of_catalog())

    def create(self, updates: Sequence[TableUpdate]) -> TableState:
        """Creates the table by applying updates to empty metadata.

        Raises:
            AlreadyExistsError: the table exists.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        if self.catalog is None:
            return create_at_location(self._io(), self.path, updates, self.path)
        return self._load_catalog().create(self._identifier(), updates)

    def io(self) -> FileIO:
        """The storage of the table's files."""
        return self._io() if self.catalog is None else self._load_catalog().io

    def new_table_io(self, updates: Sequence[TableUpdate]) -> FileIO:
        """The storage of the table's first files, before updates create the table.

        Raises:
            AlreadyExistsError: the table exists.
        """
        if self.catalog is None:
            return self._io()
        catalog = self._load_catalog()
        if isinstance(catalog, StagingCatalog):
            return catalog.new_table_io(self._identifier(), updates)
        return catalog.io

    def _io(self) -> FileIO:
        warn_of_names(self.storage_properties)
        properties = self.storage_properties
        kms = load_kms(self._properties_of_catalog(), f"table {self.path}")
        recent = recent_reads(properties)
        return FileIO(properties, self.location_map, recent=recent, key_service=kms)

    def _loaded(self, catalog: Catalog) -> TableState:
        identifier = self._identifier()
        try:
            return catalog.load(identifier)
        except NoSuchTableError as error:
            hint = default_hint(catalog.name, identifier)
            raise NoSuchTableError(f"{error}{hint}") from None

    def _load_catalog(self) -> Catalog:
        assert self.catalog is not None
        given = self._properties_of_catalog()
        return load_catalog(self.catalog, given, location_map=self.location_map)

    def _properties_of_catalog(self) -> dict[str, str]:
        return {**self.storage_properties, **self.catalog_properties}

    def _identifier(self) -> Identifier:
        return identifier_of(self.path)


def address_of(
    path: str,
    catalog: str | None,
    properties: Mapping[str, str],
    location_map: Mapping[str, str] | None = None,
) -> TableAddress:
    """The address of a table as users name it.

    Args:
        path: a location, a metadata file, or a name; without `catalog`, a name begins with that of
            a configured catalog, or is one in the default catalog.
        properties: of the catalog and the storage; a prefix `catalog.` is optional.

    Raises:
        InvalidOptionError: there are catalog properties but no catalog.
    """
    if catalog is None:
        catalog, path = named_catalog(path)
    given = {key.removeprefix("catalog."): value for key, value in properties.items()}
    storage = storage_properties_of(given)
    rest = {key: value for key, value in given.items() if key not in storage}
    return TableAddress(path, catalog, rest, storage, location_map or {})


def properties_at_location(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of a catalog's properties that a location on its storage can have.

    These are the properties of the storage and of the key service.
    """
    return {k: v for k, v in properties.items() if is_of_storage(k) or is_of_key_service(k)}


def identifier_of(text: str) -> Identifier:
    """Parses an identifier such as `db.events`; a part that contains a dot must be in backticks.

    Raises:
        InvalidOptionError: a part is empty, or backticks do not enclose a whole part; or it is not
            valid Unicode.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidOptionError(f"the name {text!r} is not valid Unicode") from None
    try:
        return split_name(text)
    except InvalidFilterError:
        raise InvalidOptionError(
            f"{text!r} is not an identifier: expected names joined by dots, such as db.events, "
            "with backticks around a name that contains a dot; to load a location, leave the "
            "catalog out"
        ) from None
