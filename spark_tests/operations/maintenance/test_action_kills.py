"""A process that is killed while it maintains a table changes no row and is in nobody's way."""

from __future__ import annotations

import random
import signal
import time
from multiprocessing.connection import Connection

import pytest
from actions import ACTIONS, ALL, CATALOGS, Place, Places, act
from built.api_tables import Properties, open_table
from effort import IS_NIGHTLY, rounds
from processes import CONTEXT

_KILLS = rounds("ICEBERGDS_KILLS", pull=1, nightly=10)


@pytest.mark.parametrize("kind", CATALOGS)
@pytest.mark.parametrize("action", [ALL, *(ACTIONS if IS_NIGHTLY else ())])
def test_killed_at_any_time(places: Places, rng: random.Random, kind: str, action: str) -> None:
    place = places(action, kind)
    start = time.monotonic()
    act(place.table, action)
    # A new process takes longer, for it also imports.
    longest = 2 * (time.monotonic() - start)
    for _ in range(_KILLS):
        place.restore()
        _run_and_kill(place, rng.uniform(0, longest))
        place.check_rows()
        place.remove_orphans()
        act(place.table, action)
        place.check_rows()
        place.check_done()
        place.remove_orphans()


def _run_and_kill(place: Place, seconds: float) -> None:
    """Runs the action in a process that is killed after a time, if it is still alive."""
    started, starting = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_act, args=(place.catalog, place.action, starting))
    process.start()
    started.recv()
    time.sleep(seconds)
    process.kill()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)


def _act(catalog: Properties, action: str, starting: Connection) -> None:
    starting.send(None)
    act(open_table(catalog), action)
