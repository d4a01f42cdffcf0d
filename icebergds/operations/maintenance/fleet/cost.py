"""Computes what a table costs beyond the least possible, in bytes and at the prices of a file."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any

from icebergds.errors import IcebergError, InvalidOptionError
from icebergds.operations.maintenance.fleet.measured import Cost, Measured, Money, TableReport
from icebergds.operations.maintenance.unused_files.orphan_files import OrphanFiles
from icebergds.suggestions import nearest_of


@dataclass(frozen=True, slots=True)
class Prices:
    """What a cloud takes; 1 GB is a billion bytes.

    Attributes:
        storage_per_gb_month: for each GB that is stored for a month.
        read_per_gb: for each GB that is read.
        requests_per_1000: for a thousand requests; opening a file is one.
        full_reads_per_month: how often a month a table is read as a whole.
        currency: shown after amounts.
    """

    storage_per_gb_month: float = 0.0
    read_per_gb: float = 0.0
    requests_per_1000: float = 0.0
    full_reads_per_month: float = 30.0
    currency: str = "USD"


def read_prices(path: str | Path) -> Prices:
    """Reads a price file.

    Raises:
        InvalidOptionError: the file cannot be read, is not TOML, or has a wrong or unknown key.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        return prices_of(tomllib.loads(text), f"price file {path}")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOptionError(f"price file {path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidOptionError(f"price file {path} is not TOML: {error}") from None


def prices_of(given: Mapping[str, Any], source: str = "prices") -> Prices:
    """Checks prices.

    Args:
        source: where they are from, for errors.

    Raises:
        InvalidOptionError: a key is unknown, or a value is not a number from 0 on.
    """
    known = [each.name for each in fields(Prices)]
    for name, value in given.items():
        if name not in known:
            raise InvalidOptionError(f"{source}: unknown key {name!r}; {nearest_of(name, known)}")
        if name == "currency":
            if not isinstance(value, str):
                raise InvalidOptionError(f"{source}: {name} = {value!r}: expected text")
        elif (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not isfinite(value)
            or value < 0
        ):
            raise InvalidOptionError(f"{source}: {name} = {value!r}: expected a number from 0 on")
    return Prices(**given)


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
