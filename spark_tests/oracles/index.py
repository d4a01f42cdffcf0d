"""Expectations of written tables, as their index holds them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oracles.canon import read_rows_file


@dataclass(frozen=True, slots=True)
class Expectation:
    """Rows that a read with `options` must give; `schema` is an Iceberg schema in JSON form."""

    options: Mapping[str, str]
    schema: Mapping[str, Any]
    rows_path: Path

    def rows(self) -> list[str]:
        return read_rows_file(self.rows_path)


@dataclass(frozen=True, slots=True)
class ExpectedTable:
    """A table, and what its writer's own reader reads from it."""

    name: str
    location: str
    features: tuple[str, ...]
    current: Expectation
    metadata_columns: Expectation | None
    deleted_rows: Expectation | None
    time_travel: tuple[Expectation, ...]


def load_index(directory: Path) -> dict[str, ExpectedTable]:
    """The tables of the index in `directory`, by name."""
    entries = json.loads((directory / "index.json").read_text())["tables"]
    return {entry["name"]: _expected_table(entry, directory) for entry in entries}


def _expected_table(entry: Mapping[str, Any], directory: Path) -> ExpectedTable:
    own_columns = {field["name"] for field in entry["schema"]["fields"]}

    def expectation(
        part: Mapping[str, Any] | None, options: Mapping[str, str] | None = None
    ) -> Expectation | None:
        if part is None:
            return None
        return Expectation(options or {}, part["schema"], directory / part["rows_file"])

    def with_metadata(part: Mapping[str, Any] | None) -> Expectation | None:
        if part is None:
            return None
        names = [f["name"] for f in part["schema"]["fields"] if f["name"] not in own_columns]
        return expectation(part, {"columns": ", ".join(["*", *names])})

    current = expectation(entry)
    travels = [expectation(part, part["options"]) for part in entry["time_travel"]]
    assert current is not None
    return ExpectedTable(
        entry["name"],
        entry["location"],
        tuple(entry["features"]),
        current,
        with_metadata(entry.get("metadata_columns")),
        with_metadata(entry.get("deleted_rows")),
        tuple(travel for travel in travels if travel is not None),
    )
