"""The tables to be written: each a function that builds one, registered under its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from oracles.jvm import Iceberg, IcebergTable

Build = Callable[..., IcebergTable]


@dataclass(frozen=True, slots=True)
class TableCase:
    """A table to write: what it shows, and the function that writes it."""

    name: str
    features: tuple[str, ...]
    build: Callable[[Iceberg, str], IcebergTable]
    as_of: bool
    refused: str | None

    @property
    def has_deletes(self) -> bool:
        """Whether merge-on-read deletes are among what the table shows."""
        return any("deletes" in feature or "vector" in feature for feature in self.features)


TABLES: dict[str, TableCase] = {}


def table(
    *features: str,
    formats: tuple[str, ...] = (),
    as_of: bool = False,
    refused: str | None = None,
) -> Callable[[Build], Build]:
    """Registers a function (iceberg, name) as a table of the function's name.

    With `formats`, a table a format, the function called with the format as its third argument.
    `as_of` asks for expectations by timestamp as well. `refused` is for what icebergds does not
    read: words of the error that says so.
    """

    def register(build: Build) -> Build:
        for name, call, extra in _variants(build, formats):
            if name in TABLES:
                raise ValueError(f"table {name} is defined twice")
            TABLES[name] = TableCase(name, (*features, *extra), call, as_of, refused)
        return build

    return register


def _variants(build: Build, formats: tuple[str, ...]) -> list[tuple[str, Any, tuple[str, ...]]]:
    if not formats:
        return [(build.__name__, build, ())]
    return [
        (f"{build.__name__}_{name}", partial(build, file_format=name), (name,)) for name in formats
    ]


ALL_FORMATS = ("parquet", "orc", "avro")
