"""Computes what a table costs beyond the least possible."""

from __future__ import annotations

from collections.abc import Callable

from icebergds.errors import IcebergError
from icebergds.operations.maintenance.fleet.measured import Cost, Measured, Money, TableReport
from icebergds.operations.maintenance.fleet.prices import Prices
from icebergds.operations.maintenance.unused_files.orphan_files import OrphanFiles

_GB = 1e9
_OPENED = 4 * 1024 * 1024
"""What opening a file counts as: the default of `read.split.open-file-cost`."""


def report_of(
    health: Measured,
    prices: Prices | None = None,
    find_orphans: Callable[[], OrphanFiles] | None = None,
) -> TableReport:
    """Reports a table.

    Args:
        find_orphans: searches for orphan files; if it fails, the report says so. None if they are
            not to be searched for.
    """
    orphans, failed = None, ""
    if find_orphans is not None:
        try:
            orphans = find_orphans()
        except IcebergError as error:
            failed = str(error)
    return TableReport(health, measure_cost(health, orphans, prices), failed)


def measure_cost(
    health: Measured, orphans: OrphanFiles | None = None, prices: Prices | None = None
) -> Cost:
    """Computes the cost of a table.

    Args:
        orphans: what a search for orphan files found; None if there was none.
    """
    all_files = health.files.count + health.deletes.count
    read_files = min(sum(advice.gain.files for advice in health.advice), all_files)
    read_bytes = health.deletes.overhead_bytes
    slowed = health.layout.with_deletes
    held = health.history.held_bytes
    orphan_bytes = None if orphans is None else orphans.orphan_bytes_count
    stored = held + (orphan_bytes or 0)
    money = None
    if prices is not None:
        read = read_bytes / _GB * prices.read_per_gb
        opened = read_files / 1000 * prices.requests_per_1000
        money = Money(
            storage=stored / _GB * prices.storage_per_gb_month,
            reads=(read + opened) * prices.full_reads_per_month,
            currency=prices.currency,
        )
    return Cost(
        read_bytes=read_bytes,
        read_files=read_files,
        slowed_files=slowed,
        held_bytes=held,
        orphan_bytes=orphan_bytes,
        weight=read_bytes + stored + (read_files + slowed) * _OPENED,
        money=money,
    )
