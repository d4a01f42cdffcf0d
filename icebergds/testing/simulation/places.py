"""Opens the catalog and storage of a simulation, as they are and as processes see them."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from icebergds.api.table import Table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.base import Catalog, Identifier, TransactionCatalog
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.catalog.loading import load_catalog
from icebergds.commit.operations import TableCommit, TableOperations, TableState
from icebergds.encryption.keystore import PATH as KEYSTORE
from icebergds.encryption.kms import KMS_IMPL, KMS_TYPE
from icebergds.errors import MissingFileError
from icebergds.io.fileio import FileIO
from icebergds.io.recursive_listing import ListedFiles
from icebergds.spec.updates.requirements import TableRequirement
from icebergds.spec.updates.table_updates import TableUpdate
from icebergds.testing.catalog_steps import create_namespaces
from icebergds.testing.faults import FaultyFileIO
from icebergds.testing.simulation.determinism import START_MS, Clock
from icebergds.testing.simulation.injected import DrawnFaults

_T = TypeVar("_T")
NAME = "simulated"
LOCAL, MEMORY = "local", "memory"
MASTER_KEY = "simulated"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Place:
    """A table of a catalog, and its storage.

    Attributes:
        catalog: as it is, without faults.
        properties: of the catalog.
        directory: a local one, which is deleted in the end.
        times: when files were written, by their resolved locations; a real storage does not know
            the simulated time.
        identifier: of the table.
    """

    catalog: Catalog
    properties: Mapping[str, str]
    clock: Clock
    directory: Path = Path()
    times: dict[str, int] = field(default_factory=dict)
    identifier: Identifier = ("db", "t")

    def of_table(self, number: int) -> Place:
        """The place of one of several tables, which are numbered from 0."""
        *namespace, name = self.identifier
        return replace(self, identifier=(*namespace, f"{name}{number or ''}"))

    @property
    def name(self) -> str:
        return ".".join(self.identifier)

    @property
    def has_keys(self) -> bool:
        """Whether tables can be encrypted by `MASTER_KEY`."""
        return self.properties.get(KEYSTORE) == _key_store_in(self.directory)

    @property
    def io(self) -> FileIO:
        """The storage as it is, except that files have simulated times."""
        return TimedFileIO(self.catalog.io, self)

    def operations(self) -> TableOperations:
        """The table's operations, without faults."""
        return SimulatedOperations(self.catalog.operations(self.identifier), None, self._timed)

    def table(self, operations: TableOperations | None = None) -> Table:
        """Loads the table.

        Args:
            operations: those of a process; without faults by default.
        """
        operations = operations or self.operations()
        return Table(self._address, operations.refresh(), operations)

    def loaded(self, operations: TableOperations) -> LoadedTable:
        """The table as a statement of a process loads it."""
        return LoadedTable(self._address, operations, operations.refresh())

    def plain_table(self) -> Table:
        """Loads the table with nothing simulated."""
        return self.table(self.catalog.operations(self.identifier))

    def of_process(self, faults: DrawnFaults) -> TableOperations:
        """The table's operations for a process, whose calls fail as drawn."""
        operations = self._faulty_catalog(faults).operations(self.identifier)
        return SimulatedOperations(operations, faults, self._faulty(faults), self.operations)

    def catalog_of_process(self, faults: DrawnFaults) -> SimulatedCatalog | None:
        """The catalog for a process that changes several tables; None if it cannot do that."""
        if not isinstance(self.catalog, TransactionCatalog):
            return None
        catalog = self._faulty_catalog(faults)
        return SimulatedCatalog(catalog, self.catalog, faults, self._faulty(faults), self._timed)

    def create(self, updates: Sequence[TableUpdate]) -> None:
        create_namespaces(self.catalog, self.identifier[:-1])
        self.catalog.create(self.identifier, updates)

    @property
    def _address(self) -> TableAddress:
        return TableAddress(self.name, NAME, dict(self.properties))

    def _faulty_catalog(self, faults: DrawnFaults) -> Any:
        catalog: Any = self.catalog
        if self.properties["type"] == "rest":
            # Its server writes metadata; what it answers is wrapped (`SimulatedOperations`).
            return catalog
        if any(part.name == "io" and part.init for part in dataclasses.fields(catalog)):
            catalog = replace(catalog, io=self._faulty(faults)(catalog.io))
        return catalog

    def _faulty(self, faults: DrawnFaults) -> Callable[[FileIO], FileIO]:
        return lambda io: SimulatedFileIO(io, self, faults)

    def _timed(self, io: FileIO) -> FileIO:
        return io if isinstance(io, TimedFileIO) else TimedFileIO(io, self)


@contextmanager
def open_place(
    seed: int, clock: Clock, catalog: str, storage: str, properties: Mapping[str, str]
) -> Iterator[Place]:
    """Opens a new catalog and storage; what is local is deleted in the end.

    Args:
        catalog: a type of catalogs. A database of `sql` without a `uri` is SQLite's, and new.
        storage: `local`, `memory`, or a location below which a directory is made for the table.
        properties: of catalog and storage.
    """
    directory = _directory(seed)
    try:
        if storage == LOCAL:
            warehouse = f"{directory}/warehouse"
        elif storage == MEMORY:
            warehouse = f"memory://{directory.name}/warehouse"
        else:
            warehouse = _new_below(storage, directory.name, properties)
        given = {"type": catalog, "warehouse": warehouse, **properties}
        if catalog in ("sql", "jdbc"):
            given.setdefault("uri", f"sqlite:///{directory}/catalog.db")
        if find_spec("cryptography") is not None and not given.keys() & {KMS_TYPE, KMS_IMPL}:
            given |= _key_service(directory)
        yield Place(load_catalog(NAME, given), given, clock, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _directory(seed: int) -> Path:
    """A new directory; in memory if the system has such a place, as nothing must survive."""
    shared = Path("/dev/shm")
    root = shared if shared.is_dir() else Path(tempfile.gettempdir())
    # With the same name in each process, as far as possible: the order of a set depends on its
    # texts. But never twice in a process, which keeps what it read of files by their names.
    for number in _numbers:
        directory = root / f"icebergds-simulation-{seed}-{number}"
        try:
            directory.mkdir()
        except FileExistsError:
            continue
        return directory
    raise AssertionError("numbers do not end")


def _new_below(storage: str, name: str, properties: Mapping[str, str]) -> str:
    """A directory without files: those of earlier runs stay, and a seed gives files their names."""
    io = FileIO(properties)
    for number in itertools.count():
        found = f"{storage.rstrip('/')}/{name}{f'-{number}' if number else ''}"
        try:
            if not any(each.files.num_rows for each in io.list_recursively(found)):
                return found
        except MissingFileError:
            return found
    raise AssertionError("numbers do not end")


def _key_store_in(directory: Path) -> str:
    return f"{directory}/keys.json"


def _key_service(directory: Path) -> dict[str, str]:
    """The properties of a key service that has `MASTER_KEY`, in a new file."""
    path = Path(_key_store_in(directory))
    path.touch(mode=0o600)
    path.write_text(json.dumps({MASTER_KEY: base64.b64encode(bytes(range(32))).decode()}))
    return {KMS_TYPE: "keystore", KEYSTORE: str(path)}


class TimedFileIO(FileIO):
    """A FileIO whose files have simulated times."""

    place: Place

    def __init__(self, io: FileIO, place: Place) -> None:
        super().__init__(
            io.properties,
            io.location_map,
            io.working_directory,
            vended=io.vended,
            rows_refused=io.rows_refused,
            key_service=io.key_service,
        )
        object.__setattr__(self, "place", place)

    def modified_ms(self, location: str) -> int | None:
        return _times_at(self, self.place, location)

    def list_recursively(self, location: str) -> Iterator[ListedFiles]:
        for listed in FileIO.list_recursively(self, location):
            yield _with_times(self.place, listed)


class SimulatedFileIO(FaultyFileIO):
    """The storage as a process sees it: it fails, and its files have simulated times."""

    place: Place
    faults: DrawnFaults

    def __init__(self, io: FileIO, place: Place, faults: DrawnFaults) -> None:
        super().__init__(io, faults)
        object.__setattr__(self, "place", place)

    def write(self, location: str, data: bytes) -> None:
        self._touch(location)
        super().write(location, data)

    def create(self, location: str, data: bytes) -> None:
        self._touch(location)
        super().create(location, data)

    def open_output(self, location: str) -> pa.NativeFile:
        self._touch(location)
        return super().open_output(location)

    def delete_all(self, locations: Iterable[str]) -> None:
        # Nothing is asked of the storage if there is nothing to delete.
        if given := list(locations):
            super().delete_all(given)

    def exists(self, location: str) -> bool:
        return self.faults.around("exists", lambda: FileIO.exists(self, location))

    def size(self, location: str) -> int:
        return self.faults.around("size", lambda: FileIO.size(self, location))

    def list(self, location: str) -> list[str]:
        return self.faults.around("list names", lambda: FileIO.list(self, location))

    def modified_ms(self, location: str) -> int | None:
        return self.faults.around("size", lambda: _times_at(self, self.place, location))

    def list_recursively(self, location: str) -> Iterator[ListedFiles]:
        def listed() -> list[ListedFiles]:
            return [
                _with_times(self.place, each) for each in FileIO.list_recursively(self, location)
            ]

        lags = self.faults.lags
        for each in self.faults.around("list", listed):
            yield each if self.faults.lags == lags else _lagging(each)

    def _touch(self, location: str) -> None:
        self.place.times[self.resolve(location)] = self.place.clock.true_ms


@dataclass(frozen=True, slots=True)
class SimulatedOperations:
    """Table operations of a process, whose states have the storage of the process.

    Attributes:
        faults: None for none.
        wrapped: the storage as the process sees it.
        server: opens the table as the catalog's server does, whatever becomes of the process.
    """

    operations: TableOperations
    faults: DrawnFaults | None
    wrapped: Callable[[FileIO], FileIO]
    server: Callable[[], TableOperations] | None = None

    @property
    def name(self) -> str:
        return self.operations.name

    def refresh(self) -> TableState:
        return self._seen(self._around("refresh", self.operations.refresh))

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        def late() -> None:
            server = (self.server or (lambda: self))()
            state = replace(base, io=server.refresh().io)
            server.commit(state, requirements, updates)

        def commit() -> TableState:
            return self.operations.commit(base, requirements, updates)

        return self._seen(self._around("commit", commit, late))

    def _around(
        self, name: str, call: Callable[[], _T], late: Callable[[], object] | None = None
    ) -> _T:
        return call() if self.faults is None else self.faults.around(name, call, late=late)

    def _seen(self, state: TableState) -> TableState:
        return _with_storage(state, self.wrapped)


@dataclass(frozen=True, slots=True)
class SimulatedCatalog:
    """A catalog that commits to several tables at once, as a process sees it.

    Attributes:
        catalog: with the storage of the process.
        server: the catalog as its server sees it, whatever becomes of the process.
        wrapped: the storage as the process sees it.
        timed: the storage as the server sees it.
    """

    catalog: Any
    server: TransactionCatalog
    faults: DrawnFaults
    wrapped: Callable[[FileIO], FileIO]
    timed: Callable[[FileIO], FileIO]

    @property
    def name(self) -> str:
        return str(self.catalog.name)

    @property
    def commits_atomically(self) -> bool:
        return self.server.commits_atomically

    def check_transactions(self) -> None:
        self.server.check_transactions()

    def commit_tables(self, commits: Sequence[TableCommit]) -> list[TableState]:
        def late() -> None:
            self.server.commit_tables(
                [
                    replace(each, base=replace(each.base, io=self.timed(each.base.io)))
                    for each in commits
                ]
            )

        states = self.faults.around(
            "commit", lambda: self.catalog.commit_tables(commits), late=late
        )
        return [_with_storage(state, self.wrapped) for state in states]


def _with_storage(state: TableState, wrapped: Callable[[FileIO], FileIO]) -> TableState:
    if isinstance(state.io, TimedFileIO | SimulatedFileIO):
        return state
    return replace(state, io=wrapped(state.io))


def _times_at(io: FileIO, place: Place, location: str) -> int | None:
    found = FileIO.modified_ms(io, location)
    return None if found is None else place.times.get(io.resolve(location), START_MS)


def _with_times(place: Place, listed: ListedFiles) -> ListedFiles:
    files = listed.files
    now = place.clock.true_ms
    times = [place.times.get(path, START_MS) for path in files["location"].to_pylist()]
    at = files.schema.get_field_index("modified_ms")
    dated = files.set_column(
        at, files.schema.field(at), pa.array(times, files.schema.field(at).type)
    )
    return ListedFiles(dated, now)


def _lagging(listed: ListedFiles) -> ListedFiles:
    """What a listing tells that misses the newest files."""
    files = listed.files
    if not files.num_rows:
        return listed
    newest = sorted(files["modified_ms"].to_pylist())[-max(1, files.num_rows // 4)]
    keep = pa.array([ms < newest for ms in files["modified_ms"].to_pylist()])
    return ListedFiles(files.filter(keep), listed.storage_time_ms)
