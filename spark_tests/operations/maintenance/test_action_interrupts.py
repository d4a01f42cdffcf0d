"""An action that Ctrl-C stops, at whatever call, deletes what it has not committed and says so.

Rows stay as they are, and no commit is lost: the table has it and the message counts it.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator

import pytest
from actions import CASES, Place, Places, act
from effort import rounds

from icebergds.testing.faults import Fault, Faults, When
from icebergds.testing.faulty_system import faulty_system

_CHANGES = ("os.open", "os.link", "OSFile", "OSFile.close", "os.replace", "sqlite.commit")
_INTERRUPTS = rounds("ICEBERGDS_INTERRUPTS", pull=6, nightly=60)


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """What starts the tests may ignore it, as shells do for jobs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("action", "kind"), CASES)
def test_an_interrupt_at_any_call(
    places: Places, rng: random.Random, action: str, kind: str
) -> None:
    place = places(action, kind)
    counting = Faults(counted=_CHANGES)
    with faulty_system(counting):
        act(place.table, action)
    calls = [(number, when) for number in range(len(counting.calls)) for when in When]
    for number, when in rng.sample(calls, min(_INTERRUPTS, len(calls))):
        place.restore()
        before = place.table.metadata_location
        error = _interrupted(place, Fault(number, when, _press_ctrl_c))
        place.check_rows()
        is_changed = place.table.metadata_location != before
        if error is not None:
            (note,) = error.__notes__
            assert " was interrupted at the stage " in note
            assert ("nothing was committed" in note) == (not is_changed), (number, when, note)
        if action != "expire" or not is_changed:
            assert place.unneeded() == set(), (number, when)
    place.restore()


def _press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _interrupted(place: Place, fault: Fault) -> KeyboardInterrupt | None:
    """Runs the action; returns what it raised, if the interrupt did not come after its end."""
    table = place.table
    try:
        with faulty_system(Faults([fault], counted=_CHANGES)):
            act(table, place.action)
    except KeyboardInterrupt as error:
        return error
    return None
