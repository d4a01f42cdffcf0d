"""Defines how other libraries take part in a simulation (`Guest`), and how they end a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

from icebergds.testing.simulation.injected import DrawnFaults
from icebergds.testing.simulation.places import Place
from icebergds.testing.simulation.steps import Outcome, Shared, Step

GuestAct: TypeAlias = Callable[[Step, Place, Shared, DrawnFaults], int | None]
"""Runs a step on a table; returns the snapshot that it says it has committed, None if none.

It sets the effect of the step before it commits, and puts `Step.summary` into the summaries of its
snapshots. It raises `GuestError` for what the other library raises.
"""


class Guest(Protocol):
    """Another library that commits to the tables of a simulation.

    Attributes:
        weight: how often its steps are drawn, beside those of the other actors.
        modules: Python modules whose time and threads are simulated too.
    """

    @property
    def weight(self) -> int: ...

    @property
    def modules(self) -> Sequence[str]: ...

    def opened(self, place: Place) -> AbstractContextManager[GuestAct]:
        """Opens the catalog of a place in the other library.

        Raises:
            InvalidOptionError: the other library has no such catalog or storage.
        """
        ...


class GuestError(Exception):
    """What another library raised.

    Attributes:
        outcome: what it says of the commit by that: refused, failed or unknown.
        is_expected: whether it may raise it although no storage and no catalog has failed.
    """

    def __init__(self, error: Exception, outcome: Outcome, *, is_expected: bool) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.outcome = outcome
        self.is_expected = is_expected
