"""The tables to be written, a module a subject; importing the package registers them all."""

from oracles.tables import (
    equality_deletes,
    evolution,
    files,
    history,
    partitions,
    position_deletes,
    types,
    v3,
)

__all__ = [
    "equality_deletes",
    "evolution",
    "files",
    "history",
    "partitions",
    "position_deletes",
    "types",
    "v3",
]
