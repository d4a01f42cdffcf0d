"""Injects faults into storage and table operations: before, halfway or after a chosen call.

A call that fails before has no effect; one that fails after has its full effect but its answer is
lost. After a `Crash` the process counts as dead: none of its later calls has an effect. Instead of
failing, a call may run something else first: another writer's commit, as if this one were slow, or
the real death of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeVar

import pyarrow as pa

from icebergds.commit.operations import TableOperations, TableState
from icebergds.io.fileio import FileIO
from icebergds.io.ranged_file import Range
from icebergds.spec.updates.requirements import TableRequirement
from icebergds.spec.updates.table_updates import TableUpdate

_T = TypeVar("_T")


class Crash(BaseException):
    """The process died; a BaseException, so that error handlers do not catch it."""


class When(StrEnum):
    """When a call fails; only writes can fail halfway, which leaves a torn file."""

    BEFORE = "before"
    HALFWAY = "halfway"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        call: number of the call that fails, from 0, among those counted by `Faults`.
        when: when the call fails.
        error: the error to raise (a `Crash` is also raised by every later call), or a function to
            call, after which the call continues.
        lasting: whether every later call fails, too.
    """

    call: int
    when: When
    error: BaseException | Callable[[], object]
    lasting: bool = False

    def is_at(self, call: int) -> bool:
        return self.call <= call if self.lasting else self.call == call


@dataclass(slots=True)
class Faults:
    """Counts calls and makes some of them fail.

    Args:
        planned: the faults.
        counted: names of the calls that count, or None for all: `read_bytes`, `open`, `write`,
            `create`, `open_output`, `delete`, `delete_all`, `delete_each` of storage,
            `write_stream` and `close_stream` of the streams from `open_output`, `refresh` and
            `commit` of tables.

    Attributes:
        calls: names of the counted calls so far.
    """

    planned: Sequence[Fault] = ()
    counted: Collection[str] | None = ("write", "create", "delete", "delete_all", "commit")
    calls: list[str] = field(default_factory=list)
    _dead: Crash | None = None

    def around(
        self, name: str, call: Callable[[], _T], halfway: Callable[[], object] | None = None
    ) -> _T:
        """Runs a call, with its fault if one is planned."""
        if self._dead is not None:
            raise _as_new(self._dead)
        if self.counted is not None and name not in self.counted:
            return call()
        number = len(self.calls)
        self.calls.append(name)
        fault = next((fault for fault in self.planned if fault.is_at(number)), None)
        if fault is None:
            return call()
        if not isinstance(fault.error, BaseException):
            return _interrupted(fault.when, fault.error, call, halfway)
        if fault.when is When.AFTER:
            call()
        elif fault.when is When.HALFWAY and halfway is not None:
            halfway()
        if isinstance(fault.error, Crash):
            self._dead = fault.error
        raise _as_new(fault.error)


class CallFaults(Protocol):
    """Lets calls of storage and tables fail, as planned (`Faults`) or as drawn."""

    @property
    def counted(self) -> Collection[str] | None:
        """Names of the calls that may fail; None for all."""
        ...

    def around(
        self, name: str, call: Callable[[], _T], halfway: Callable[[], object] | None = None
    ) -> _T:
        """Runs a call, or lets it fail.

        Args:
            halfway: has a part of the effect of the call.
        """
        ...


def _as_new(error: BaseException) -> BaseException:
    """An error without the frames that it was raised through before, and all that they hold."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _interrupted(
    when: When,
    interruption: Callable[[], object],
    call: Callable[[], _T],
    halfway: Callable[[], object] | None,
) -> _T:
    """Runs a call and an interruption before it, halfway through it or after it."""
    if when is When.AFTER:
        result = call()
        interruption()
        return result
    if when is When.HALFWAY and halfway is not None:
        halfway()
    interruption()
    return call()


class FaultyFileIO(FileIO):
    """A FileIO with faults."""

    def __init__(self, io: FileIO, faults: CallFaults) -> None:
        super().__init__(
            io.properties,
            io.location_map,
            io.working_directory,
            vended=io.vended,
            rows_refused=io.rows_refused,
            key_service=io.key_service,
        )
        object.__setattr__(self, "faults", faults)

    faults: CallFaults

    def read_bytes(self, location: str) -> bytes:
        return self.faults.around("read_bytes", lambda: FileIO.read_bytes(self, location))

    def open(
        self, location: str, size: int | None = None, first: Range | None = None
    ) -> pa.NativeFile:
        return self.faults.around("open", lambda: FileIO.open(self, location, size, first))

    def write(self, location: str, data: bytes) -> None:
        self.faults.around(
            "write",
            lambda: FileIO.write(self, location, data),
            lambda: FileIO.write(self, location, data[: len(data) // 2]),
        )

    def create(self, location: str, data: bytes) -> None:
        self.faults.around("create", lambda: FileIO.create(self, location, data))

    def open_output(self, location: str) -> pa.NativeFile:
        stream = self.faults.around("open_output", lambda: FileIO.open_output(self, location))
        counted = self.faults.counted
        if counted is not None and _STREAM_CALLS.isdisjoint(counted):
            return stream
        return pa.PythonFile(FaultyStream(stream, self.faults), "w")

    def delete(self, location: str) -> None:
        self.faults.around("delete", lambda: FileIO.delete(self, location))

    def delete_all(self, locations: Iterable[str]) -> None:
        self.faults.around("delete_all", lambda: FileIO.delete_all(self, locations))

    def delete_each(self, locations: Iterable[str]) -> dict[str, Exception]:
        return self.faults.around("delete_each", lambda: FileIO.delete_each(self, locations))


_STREAM_CALLS = frozenset({"write_stream", "close_stream"})


class StreamFaults(Protocol):
    """Lets calls of a stream fail."""

    def around(
        self, name: str, call: Callable[[], _T], halfway: Callable[[], object] | None = None
    ) -> _T:
        """Runs a call, or lets it fail, as `CallFaults.around`."""
        ...


@dataclass(slots=True)
class FaultyStream:
    """A Python file that is open for writing, with faults; for `pyarrow.PythonFile`."""

    stream: pa.NativeFile
    faults: StreamFaults

    @property
    def closed(self) -> bool:
        return bool(self.stream.closed)

    def tell(self) -> int:
        return int(self.stream.tell())

    def write(self, data: bytes) -> int:
        done = 0

        def write_half() -> None:
            nonlocal done
            done = int(self.stream.write(data[: len(data) // 2]))

        self.faults.around("write_stream", lambda: self.stream.write(data[done:]), write_half)
        return len(data)

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        self.faults.around("close_stream", self.stream.close)


@dataclass(frozen=True, slots=True)
class FaultyOperations:
    """Table operations with faults; the tables that they load have the usual storage."""

    operations: TableOperations
    faults: Faults

    @property
    def name(self) -> str:
        return self.operations.name

    def refresh(self) -> TableState:
        return self.faults.around("refresh", self.operations.refresh)

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        return self.faults.around(
            "commit", lambda: self.operations.commit(base, requirements, updates)
        )
