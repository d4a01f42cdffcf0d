"""Lets PyIceberg's storage fail as drawn (`SimulatedPyArrowFileIO`); needs PyIceberg."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from pyiceberg.io import InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFileIO

from icebergds.errors import StorageError
from icebergds.testing.faults import FaultyStream
from icebergds.testing.simulation.injected import DrawnFaults
from icebergds.testing.simulation.places import Place

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class StorageOfProcess:
    """What a process's storage needs to know."""

    place: Place
    faults: DrawnFaults

    def around(
        self, name: str, call: Callable[[], _T], halfway: Callable[[], object] | None = None
    ) -> _T:
        """Runs a call as `DrawnFaults.around`; errors are those that PyIceberg expects."""
        try:
            return self.faults.around(name, call, halfway)
        except StorageError as error:
            raise OSError(str(error)) from error


_current: ContextVar[StorageOfProcess | None] = ContextVar("_current", default=None)


@contextmanager
def storage_of(process: StorageOfProcess) -> Iterator[None]:
    """Gives the storage that PyIceberg opens in the block the faults of a process."""
    token = _current.set(process)
    try:
        yield
    finally:
        _current.reset(token)


class SimulatedPyArrowFileIO(PyArrowFileIO):
    """PyIceberg's storage; what is opened for a process has its faults and the simulated time."""

    def __init__(self, properties: dict[str, str]) -> None:
        super().__init__(properties)
        self._process = _current.get()

    def new_input(self, location: str) -> Any:
        found = super().new_input(location)
        return found if self._process is None else _Input(found, self._process)

    def new_output(self, location: str) -> Any:
        found = super().new_output(location)
        return found if self._process is None else _Output(found, self._process)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        path = location if isinstance(location, str) else location.location
        if self._process is None:
            PyArrowFileIO.delete(self, path)
        else:
            self._process.around("delete", lambda: PyArrowFileIO.delete(self, path))


class _Input(InputFile):
    def __init__(self, file: InputFile, process: StorageOfProcess) -> None:
        super().__init__(file.location)
        self._file, self._process = file, process

    def __len__(self) -> int:
        return self._process.around("size", lambda: len(self._file))

    def exists(self) -> bool:
        return self._process.around("exists", self._file.exists)

    def open(self, seekable: bool = True) -> InputStream:
        return self._process.around("open", lambda: self._file.open(seekable))


class _Output(OutputFile):
    def __init__(self, file: OutputFile, process: StorageOfProcess) -> None:
        super().__init__(file.location)
        self._file, self._process = file, process

    def __len__(self) -> int:
        return self._process.around("size", lambda: len(self._file))

    def exists(self) -> bool:
        return self._process.around("exists", self._file.exists)

    def to_input_file(self) -> InputFile:
        return _Input(self._file.to_input_file(), self._process)

    def create(self, overwrite: bool = False) -> OutputStream:
        place = self._process.place
        place.times[place.io.resolve(self.location)] = place.clock.true_ms
        stream: Any = self._process.around("open_output", lambda: self._file.create(overwrite))
        faulty: OutputStream = pa.PythonFile(FaultyStream(stream, self._process), "w")
        return faulty
