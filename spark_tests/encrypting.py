"""Has all new tables of a test run encrypted: `python -m pytest -p encrypting ...`.

Tables of version 2 get version 3, which encryption needs. Tables that cannot be encrypted stay as
they are: those of version 1, of ORC files, or with Bloom filters. Processes that tests start do the
same, by `PYTHONPATH`: those of Spark, too.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from encrypting_processes import always_encrypted

from icebergds.spec.table_properties import ENCRYPTION_KEY_ID, FORMAT_VERSION

CANNOT_HOLD = {
    "api/test_api_row_changes.py::test_position_deletes_of_one_file_add_up": "is of version 2",
    "commit/test_commit_append.py::test_partition_summaries_are_there_up_to_their_limit": (
        "summaries do not tell of partitions"
    ),
    "commit/test_commit_append.py::test_sequence_numbers_are_inherited_from_the_manifest_list": (
        "reads a manifest without its key"
    ),
    "operations/maintenance/test_rewrite_manifests.py::"
    "test_fastavro_reads_the_manifest_by_the_schema_of_the_specification": (
        "reads a manifest without its key"
    ),
    "operations/test_operations_resolve_keys.py::"
    "test_a_table_that_lists_a_file_twice_gets_equality_deletes": (
        "adds a file of a table as one that is not encrypted"
    ),
}
"""Tests that are skipped on encrypted tables, and why."""


_made: Counter[str] = Counter()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Before modules import what this replaces."""
    always_encrypted.install()
    _encrypt_built_tables()
    # Folders of what they import at their start.
    tests = Path(__file__).parent
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [tests / "encrypting_processes", tests, tests.parent, *filter(None, given)]
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, paths))


def _encrypt_built_tables() -> None:
    from built.tables import TableBuilder

    make, set_properties = TableBuilder.__init__, TableBuilder.set_properties

    def encrypted(
        self: TableBuilder,
        location: Path | str,
        schema: Any,
        *,
        format_version: int = 2,
        properties: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        given = dict(properties or {})
        if keys := always_encrypted.with_key(format_version, given):
            always_encrypted.made.append(str(location))
            format_version = int(keys.pop(FORMAT_VERSION))
        given |= keys
        make(self, location, schema, format_version=format_version, properties=given, **more)

    def keeping_the_key(self: TableBuilder, properties: Mapping[str, str]) -> None:
        name = ENCRYPTION_KEY_ID.name
        kept = {k: v for k, v in self.metadata.properties.items() if k == name}
        set_properties(self, {**properties, **kept})

    TableBuilder.__init__ = encrypted  # type: ignore[method-assign]
    TableBuilder.set_properties = keeping_the_key  # type: ignore[method-assign]


def pytest_runtest_logfinish(nodeid: str) -> None:
    _made[nodeid.partition("::")[0]] += len(always_encrypted.made)
    always_encrypted.made.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for module, tables in (+_made).items():
        terminalreporter.write_line(f"{module}: {tables} encrypted tables")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = item.nodeid.partition("[")[0].removeprefix("spark_tests/")
        if (why := CANNOT_HOLD.get(name)) is not None:
            item.add_marker(pytest.mark.skip(reason=f"on encrypted tables: {why}"))
