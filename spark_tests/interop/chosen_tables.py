"""Which of the tables of `oracles.tables` Java Iceberg writes and we read."""

from __future__ import annotations

import oracles.tables  # noqa: F401  (registers the tables)
from effort import IS_NIGHTLY
from oracles.registry import ALL_FORMATS, TABLES


def _chosen() -> list[str]:
    """All in the nightly profile; else, of tables in three formats, one each, in turn."""
    if IS_NIGHTLY:
        return list(TABLES)
    first = [name.removesuffix("_parquet") for name in TABLES if name.endswith("_parquet")]
    in_all = [t for t in first if all(f"{t}_{kind}" in TABLES for kind in ALL_FORMATS)]
    left_out = {
        f"{table}_{kind}"
        for at, table in enumerate(in_all)
        for kind in ALL_FORMATS
        if kind != ALL_FORMATS[at % len(ALL_FORMATS)]
    }
    return [name for name in TABLES if name not in left_out]


CHOSEN = _chosen()
