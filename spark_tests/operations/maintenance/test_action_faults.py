"""An action that fails or dies at any call of its storage or database changes no row.

Snapshots, branches and tags read as before; the action can be repeated; nothing is left behind, or
what is left goes with the next removal of orphan files.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Sequence
from itertools import product

import pytest
from actions import CASES, Place, Places, act
from effort import rounds

from icebergds.errors import IcebergError
from icebergds.testing.faults import Crash, Fault, Faults, When
from icebergds.testing.faulty_system import faulty_system

_WRITES = ("os.open", "os.link", "file.write", "OSFile", "OSFile.write", "OSFile.close")
_CHANGES = (*_WRITES, "os.replace", "os.unlink", "os.rmdir", "sqlite.execute", "sqlite.commit")
# What cannot be deleted is left, and so is what could not be seen to have been created.
_MAY_LEAVE = ("os.unlink", "os.listdir", "os.scandir", "os.stat", "os.open")
_EXPIRED = "expired, but no file was deleted"
# Of the many pieces of files that are written, so many fail.
_PIECES = 10
# Nightly, other ones each time.
_CRASHES = rounds("ICEBERGDS_CRASHES", pull=1, nightly=20)
_ERRORS = rounds("ICEBERGDS_ERRORS", pull=1, nightly=15)


pytestmark = pytest.mark.parametrize(("action", "kind"), CASES)


def _calls(place: Place) -> list[str]:
    """The calls of the action."""
    counting = Faults(counted=None)
    assert _run(place, counting) is None
    place.check_rows()
    assert place.files_now() != place.files
    return counting.calls


def _run(place: Place, faults: Faults) -> IcebergError | None:
    """Runs the action; returns its error."""
    table = place.table
    with faulty_system(faults):
        try:
            act(table, place.action)
        except IcebergError as error:
            return error
    return None


def _error(code: int) -> OSError:
    """An error of its own for each fault: one that is raised again and again grows."""
    return OSError(code, os.strerror(code))


def _chosen(
    faults: Sequence[Fault], calls: Sequence[str], rng: random.Random, most: int
) -> list[Fault]:
    """The faults to try, in any order: at most so many."""
    pieces = [fault for fault in faults if calls[fault.call] == "OSFile.write"]
    others = [fault for fault in faults if calls[fault.call] != "OSFile.write"]
    chosen = [*others, *rng.sample(pieces, min(_PIECES, len(pieces)))]
    return rng.sample(chosen, min(most, len(chosen)))


def _check_repeated(place: Place) -> None:
    """The action can be repeated."""
    assert _run(place, Faults(counted=())) is None
    place.check_rows()
    place.check_done()


def test_a_crash_leaves_before_or_after(
    places: Places, rng: random.Random, action: str, kind: str
) -> None:
    place = places(action, kind)
    calls = [call for call in _calls(place) if call in _CHANGES]
    # Before a call is after the one before it.
    ways = product(range(len(calls)), (When.HALFWAY, When.AFTER))
    for fault in _chosen([Fault(call, when, Crash()) for call, when in ways], calls, rng, _CRASHES):
        place.restore()
        with pytest.raises(Crash):
            _run(place, Faults([fault], counted=_CHANGES))
        place.remove_orphans()
        place.check_rows()
        _check_repeated(place)
        place.remove_orphans()


def test_an_error_leaves_before_or_after_and_is_told(
    places: Places,
    rng: random.Random,
    caplog: pytest.LogCaptureFixture,
    action: str,
    kind: str,
) -> None:
    place = places(action, kind)
    calls = _calls(place)
    ways = product(range(len(calls)), (When.BEFORE, When.AFTER), (False, True))
    failing = [Fault(call, when, _error(errno.EIO), lasting) for call, when, lasting in ways]
    for fault in _chosen(failing, calls, rng, _ERRORS):
        place.restore()
        caplog.clear()
        faults = Faults([fault], counted=None)
        outcome = _run(place, faults)
        named = f"{faults.calls[fault.call]}, {fault}: {outcome}"
        place.check_rows()
        _check_told(place, outcome, named)
        # Of a step that may fail, the outcome is logged.
        is_logged = any("not known whether the commit" in line for line in caplog.messages)
        is_known = not is_logged and (outcome is None or not outcome.outcome_unknown)
        if is_known and not fault.lasting and faults.calls[fault.call] not in _MAY_LEAVE:
            assert not place.unneeded(), named
        _check_repeated(place)


def test_a_full_disk_leaves_no_new_files(
    places: Places, rng: random.Random, action: str, kind: str
) -> None:
    place = places(action, kind)
    calls = [call for call in _calls(place) if call in _WRITES]
    ways = product(range(len(calls)), (When.BEFORE, When.HALFWAY))
    full = [Fault(call, when, _error(errno.ENOSPC), lasting=True) for call, when in ways]
    for fault in _chosen(full, calls, rng, _ERRORS):
        place.restore()
        outcome = _run(place, Faults([fault], counted=_WRITES))
        place.check_rows()
        _check_told(place, outcome, f"{calls[fault.call]}, {fault}: {outcome}")
        assert not place.unneeded(), f"{calls[fault.call]}, {fault}: {outcome}"
        _check_repeated(place)


def _check_told(place: Place, outcome: IcebergError | None, named: str) -> None:
    """An error means that nothing was committed, unless it says something else."""
    if outcome is None or outcome.outcome_unknown or _EXPIRED in str(outcome):
        return
    if place.action == "partial progress" and "nothing was committed" not in str(outcome):
        return
    assert place.table.metadata_location == place.metadata_location, named
