"""Reads prices of storage and reads from a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any

from icebergds.errors import InvalidOptionError
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
