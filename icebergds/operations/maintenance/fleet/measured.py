"""Defines what a report shows of a table: its health and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from icebergds.operations.maintenance.health.advice import Advice
from icebergds.operations.maintenance.health.figures import (
    DataFileHealth,
    DeleteHealth,
    ManifestHealth,
    MetadataHealth,
)
from icebergds.operations.maintenance.health.history import TableHistory
from icebergds.operations.maintenance.health.layout import FileLayout


class Measured(Protocol):
    """The health of a table, which itself shows as a report."""

    @property
    def table(self) -> str: ...
    @property
    def branch(self) -> str: ...
    @property
    def files(self) -> DataFileHealth: ...
    @property
    def deletes(self) -> DeleteHealth: ...
    @property
    def manifests(self) -> ManifestHealth: ...
    @property
    def metadata(self) -> MetadataHealth: ...
    @property
    def advice(self) -> Sequence[Advice]: ...
    @property
    def layout(self) -> FileLayout: ...
    @property
    def history(self) -> TableHistory: ...


@dataclass(frozen=True, slots=True)
class Money:
    """What a table costs in a month that it need not cost, in the currency of the price file.

    Attributes:
        storage: of bytes that only older snapshots, or nothing, refers to.
        reads: of what full reads read and open for nothing.
    """

    storage: float
    reads: float
    currency: str

    @property
    def total(self) -> float:
        """Both together."""
        return self.storage + self.reads

    def __str__(self) -> str:
        return money_text(self.total, self.currency)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a table costs beyond the least possible, judging by metadata.

    Attributes:
        read_bytes: about how many bytes a full read reads for nothing: deleted rows and deletes.
        read_files: about how many files it opens that maintenance would spare.
        slowed_files: how many data files are read with deletes.
        held_bytes: about how many bytes only older snapshots refer to.
        orphan_bytes: how many bytes nothing refers to; None if the directory was not listed.
        weight: all of it in bytes, to compare tables by; a file that is opened for nothing, or
            read with deletes, counts as 4 MB, as the planner of reads counts it.
        money: None without prices.
    """

    read_bytes: int = 0
    read_files: int = 0
    slowed_files: int = 0
    held_bytes: int = 0
    orphan_bytes: int | None = None
    weight: int = 0
    money: Money | None = None

    @property
    def rank(self) -> tuple[float, int]:
        """What tables are ordered by: money if it is known, then weight."""
        return (0.0 if self.money is None else self.money.total, self.weight)


@dataclass(frozen=True, slots=True)
class TableReport:
    """A table in a report.

    Attributes:
        orphan_error: why its directory could not be searched for orphan files.
    """

    health: Measured
    cost: Cost
    orphan_error: str = ""


@dataclass(frozen=True, slots=True)
class FailedTable:
    """A table that could not be measured, and why."""

    table: str
    error: str


def money_text(amount: float, currency: str) -> str:
    """An amount such as `12.30 USD`; small ones with more digits."""
    digits = 2 if amount >= 1 or not amount else 4
    return f"{amount:,.{digits}f} {currency}".rstrip()
