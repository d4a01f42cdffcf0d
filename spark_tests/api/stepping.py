"""Writers in threads of which one goes at a time, from one call to the storage to the next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from icebergds.catalog.address import TableAddress
from icebergds.catalog.base import Catalog
from icebergds.catalog.filesystem.catalog import FileSystemCatalog
from icebergds.io.fileio import FileIO


class Turns:
    """Decides who goes next.

    Args:
        order: numbers of writers, one a call; when it is used up, the lowest that is not done goes.
        writers: how many there are.
    """

    def __init__(self, order: Sequence[int], writers: int) -> None:
        self._order = list(order)
        self._waiting = set(range(writers))
        self._changed = threading.Condition()
        self._next = self._choose()

    def wait(self, writer: int) -> None:
        """Ends the turn of a writer and waits for its next one."""
        with self._changed:
            if self._next == writer:
                self._next = self._choose()
                self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._next == writer, timeout=120)

    def start(self, writer: int) -> None:
        """Waits for the first turn of a writer."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._next == writer, timeout=120)

    def end(self, writer: int) -> None:
        """A writer is done."""
        with self._changed:
            self._waiting.discard(writer)
            if self._next == writer:
                self._next = self._choose()
            self._changed.notify_all()

    def _choose(self) -> int | None:
        while self._order:
            writer = self._order.pop(0)
            if writer in self._waiting:
                return writer
        return min(self._waiting, default=None)


class SteppingFileIO(FileIO):
    """A FileIO that waits for its writer's turn before each call to the metadata's storage."""

    turns: Turns
    writer: int

    def read_bytes(self, location: str) -> bytes:
        self.turns.wait(self.writer)
        return super().read_bytes(location)

    def list(self, location: str) -> list[str]:
        self.turns.wait(self.writer)
        return super().list(location)

    def write(self, location: str, data: bytes) -> None:
        self.turns.wait(self.writer)
        super().write(location, data)

    def create(self, location: str, data: bytes) -> None:
        self.turns.wait(self.writer)
        super().create(location, data)

    def open_output(self, location: str) -> pa.NativeFile:
        self.turns.wait(self.writer)
        return super().open_output(location)


class SteppingAddress(TableAddress):
    """A table of a file system catalog that is read and written in turns."""

    turns: Turns
    writer: int

    def _load_catalog(self) -> Catalog:
        catalog = super()._load_catalog()
        assert isinstance(catalog, FileSystemCatalog)
        io = SteppingFileIO(catalog.io.properties, catalog.io.location_map)
        object.__setattr__(io, "turns", self.turns)
        object.__setattr__(io, "writer", self.writer)
        return replace(catalog, io=io)


@dataclass(slots=True)
class Outcome:
    """How a writer ended: `error` is None where it has committed."""

    error: Exception | None = None


def run_in_turns(
    address: TableAddress, order: Sequence[int], writers: Sequence[Callable[[TableAddress], None]]
) -> list[Outcome]:
    """Runs writers, each in a thread of its own, with calls to the storage in the order given."""
    turns = Turns(order, len(writers))
    outcomes = [Outcome() for _ in writers]

    def run(number: int) -> None:
        own = SteppingAddress(address.path, address.catalog, address.catalog_properties)
        object.__setattr__(own, "turns", turns)
        object.__setattr__(own, "writer", number)
        try:
            turns.start(number)
            writers[number](own)
        except Exception as error:
            outcomes[number].error = error
        finally:
            turns.end(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(writers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
