"""How a table is named: by its location, a metadata file, or an identifier in a catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icebergds.catalog.base import Catalog, Identifier
from icebergds.catalog.loading import load_catalog
from icebergds.catalog.location_commits import create_at_location, location_operations
from icebergds.catalog.metadata_files import load_from_location
from icebergds.commit.operations import TableOperations, TableState
from icebergds.errors import InvalidOptionError
from icebergds.io.fileio import FileIO
from icebergds.spec.updates import TableUpdate


@dataclass(frozen=True, slots=True)
class TableAddress:
    """What leads to a table, in any process.

    Attributes:
        path: a location or a metadata file; with `catalog`, an identifier such as `db.table`.
        catalog: the name of the catalog.
        catalog_properties: `type`, `warehouse` and what else the catalog asks for.
        storage_properties: properties of the storage, such as `s3.endpoint`.
        location_map: prefixes of locations and what stands in for them.

    Raises:
        InvalidOptionError: properties of a catalog, and no catalog.
    """

    path: str
    catalog: str | None = None
    catalog_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    storage_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    location_map: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.catalog is None and self.catalog_properties:
            raise InvalidOptionError(
                f"properties {', '.join(self.catalog_properties)} are a catalog's, but no catalog "
                "is named: set option('catalog', '<name>') or catalog='<name>'"
            )

    def load(self) -> TableState:
        """The table's current state.

        Raises:
            NoSuchTableError: there is no such table.
            InvalidMetadataError: its metadata is damaged.
            UnsupportedFeatureError: its format version is above 3.
        """
        if self.catalog is None:
            return load_from_location(self._io(), self.path)
        return self._load_catalog().load(self._identifier())

    def operations(self) -> TableOperations:
        """What commits to the table; whether it exists shows when it is used.

        Raises:
            InvalidOptionError: the address is that of a metadata file, which never changes.
        """
        if self.catalog is None:
            return location_operations(self._io(), self.path, self.path)
        return self._load_catalog().operations(self._identifier())

    def new_location(self, chosen: str | None) -> str:
        """Where the table goes if it is created.

        Args:
            chosen: the location that the user wants; None for the address or the catalog's choice.

        Raises:
            InvalidOptionError: the address is itself a location, and another one is wanted.
        """
        if self.catalog is not None:
            return chosen or self._load_catalog().new_table_location(self._identifier())
        location = self._io().absolute(self.path).rstrip("/")
        if chosen is not None and self._io().absolute(chosen).rstrip("/") != location:
            raise InvalidOptionError(
                f"option 'location' = {chosen!r}, but the table is named by the location "
                f"{self.path!r}; leave the option out, or name the table by a catalog"
            )
        return location

    def create(self, updates: Sequence[TableUpdate]) -> TableState:
        """Creates the table from nothing but updates.

        Raises:
            AlreadyExistsError: there is a table.
            CommitStateUnknownError: whether it was created is not known.
        """
        if self.catalog is None:
            return create_at_location(self._io(), self.path, updates, self.path)
        return self._load_catalog().create(self._identifier(), updates)

    def io(self) -> FileIO:
        """The storage that the table's files are on."""
        return self._io() if self.catalog is None else self._load_catalog().io

    def options(self) -> dict[str, str]:
        """The address as options of a load or a save, but for the path and the location map."""
        catalog = {} if self.catalog is None else {"catalog": self.catalog}
        properties = {f"catalog.{name}": value for name, value in self.catalog_properties.items()}
        return {**self.storage_properties, **catalog, **properties}

    def _io(self) -> FileIO:
        return FileIO(self.storage_properties, self.location_map)

    def _load_catalog(self) -> Catalog:
        assert self.catalog is not None
        properties = {**self.storage_properties, **self.catalog_properties}
        return load_catalog(self.catalog, properties, location_map=self.location_map)

    def _identifier(self) -> Identifier:
        return tuple(self.path.split("."))
