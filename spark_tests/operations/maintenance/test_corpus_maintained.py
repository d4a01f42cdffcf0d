"""Maintains tables that other engines wrote; the rows stay as independent readers have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from corpus import exact_tables, expected_rows, skip_where_files_are_absent
from corpus_copies import copied_table
from effort import IS_NIGHTLY
from oracles.canon import canonical_rows
from oracles.comparison import difference

from icebergds.api.table import Table
from icebergds.errors import MissingFileError
from icebergds.spec.json.schema import schema_to_json

_TELLING = (
    "delet",
    "evolution",
    "mapping",
    "file-has",
    "file-lacks",
    "specs",
    "orc",
    "avro)",
    "v3",
)
_FAR_AHEAD_MS = 4_000_000_000_000


def _rewrite(table: Table, **options: str) -> None:
    table.rewrite_data_files(options={"rewrite-all": "true", **_named(options)})


def _rewrite_small(table: Table) -> None:
    _rewrite(table, target_file_size_bytes="2000", partial_progress__enabled="true")


def _rewrite_deletes(table: Table) -> None:
    table.rewrite_position_delete_files(options={"rewrite-all": "true"})


def _convert(table: Table) -> None:
    table.convert_equality_deletes()


def _remove_deletes(table: Table) -> None:
    table.remove_dangling_deletes()


def _rewrite_manifests(table: Table) -> None:
    table.rewrite_manifests()


def _upgrade(table: Table) -> None:
    table.upgrade(3)


def _expire(table: Table) -> None:
    table.expire_snapshots(_FAR_AHEAD_MS, retain_last=1)


_Actions = Sequence[Callable[[Table], None]]
_ORDERS: dict[str, _Actions] = {
    "deletes first": [
        _rewrite_manifests,
        _remove_deletes,
        _rewrite_deletes,
        _convert,
        _rewrite,
        _expire,
    ],
    "rows first": [_rewrite_small, _upgrade, _rewrite, _rewrite_manifests, _expire],
    "upgraded": [_upgrade, _convert, _rewrite_deletes, _rewrite_small, _remove_deletes, _expire],
}


def _cases() -> list[Any]:
    """All tables with rows in the nightly profile, else those with deletes or uneven files."""
    tables = [
        table
        for table in exact_tables()
        if table["expected"]["rows"]
        and table["resolve"]
        and all(entry["replace_with"].startswith(table["path"]) for entry in table["resolve"])
        and (IS_NIGHTLY or any(word in name for word in _TELLING for name in table["features"]))
    ]
    return [
        pytest.param(table, actions, id=f"{table['id']}, {name}")
        for at, table in enumerate(tables)
        for number, (name, actions) in enumerate(_ORDERS.items())
        if IS_NIGHTLY or at % len(_ORDERS) == number
    ]


@pytest.mark.parametrize(("known", "actions"), _cases())
def test_rows_are_those_of_independent_readers_after_each_action(
    tmp_path: Path, known: dict[str, Any], actions: _Actions
) -> None:
    table, expected = copied_table(known, tmp_path / "t"), expected_rows(known)
    try:
        table.scan().to_arrow()
    except MissingFileError as error:
        skip_where_files_are_absent(error)
    for action in actions:
        action(table)
        read = canonical_rows(table.scan().to_arrow(), schema_to_json(table.schema()))
        problem = difference(read, expected, f"{known['id']} after {action.__name__}")
        assert problem is None, problem


def _named(options: dict[str, str]) -> dict[str, str]:
    """`__` stands for a dot and `_` for a hyphen."""
    return {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
