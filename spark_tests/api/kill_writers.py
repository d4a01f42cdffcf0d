"""Writers in processes of their own that are killed."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess

from built.api_tables import Properties
from faulty_writes import CALLS, write
from processes import CONTEXT
from sqlalchemy import Engine, event

from icebergds.testing.faults import Fault, Faults, When


def run_and_kill_at(catalog: Properties, kind: str, call: int, when: When) -> None:
    """Writes in a process that is killed before, halfway or after a call."""
    process = _start(_write_killed_at, catalog, kind, call, when)
    process.join()
    assert process.exitcode == -signal.SIGKILL


def run_and_kill_in_transaction(catalog: Properties, kind: str) -> None:
    """Writes in a process that is killed when its transaction is about to be committed."""
    process = _start(_write_killed_in_transaction, catalog, kind)
    process.join()
    assert process.exitcode == -signal.SIGKILL


def run_and_kill_after(catalog: Properties, kind: str, seconds: float) -> None:
    """Writes in a process that is killed after a time, if it is still alive."""
    started, starting = CONTEXT.Pipe(duplex=False)
    process = _start(_write_and_tell, catalog, kind, starting)
    started.recv()
    time.sleep(seconds)
    process.kill()
    process.join()


def seconds_of_a_write(catalog: Properties, kind: str) -> float:
    """How long a write takes in a process of its own."""
    started, starting = CONTEXT.Pipe(duplex=False)
    process = _start(_write_and_tell, catalog, kind, starting)
    started.recv()
    start = time.monotonic()
    process.join()
    assert process.exitcode == 0
    return time.monotonic() - start


def _start(target: object, *arguments: object) -> ForkServerProcess:
    process = CONTEXT.Process(target=target, args=arguments)  # type: ignore[arg-type]
    process.start()
    return process


def _write_and_tell(catalog: Properties, kind: str, starting: Connection) -> None:
    starting.send(None)
    write(catalog, kind)


def _write_killed_at(catalog: Properties, kind: str, call: int, when: When) -> None:
    write(catalog, kind, Faults([Fault(call, when, _die)], counted=CALLS))


def _write_killed_in_transaction(catalog: Properties, kind: str) -> None:
    event.listen(Engine, "commit", lambda connection: _die())
    write(catalog, kind)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
