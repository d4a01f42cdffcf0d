"""Which table properties are known by name."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from icebergds import load_catalog
from icebergds.operations.evolution.known_properties import is_known, nearest_known

DOCS = Path(__file__).parents[2] / "docs" / "properties.md"
ROOTS = ("write.", "read.", "commit.", "history.", "schema.", "gc.", "icebergds.", "format-version")


def documented() -> Iterator[tuple[str, list[str]]]:
    """Each name of the tables with what it may stand for: short ones continue a whole one."""
    for row in re.findall(r"^\| (`[^|]*) \|", DOCS.read_text(), re.MULTILINE):
        whole = ""
        for name in re.findall("`([^`]*)`", row.replace("<c>", "c")):
            if name.startswith(ROOTS):
                whole = name
                yield name, [name]
            else:
                cuts = [whole[: cut.start()] for cut in re.finditer(r"[.-]", whole)]
                joints = ("",) if name[0] in ".-" else (".", "-")
                yield name, [f"{cut}{joint}{name}" for cut in cuts for joint in joints]


def test_all_documented_properties_are_known() -> None:
    found = list(documented())
    assert len(found) > 60
    for name, meant in found:
        assert name.endswith("*") or any(map(is_known, meant)), name


def test_a_nearly_known_one_gets_a_hint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = load_catalog("lake", warehouse=str(tmp_path)).create_table("db.t", "id bigint")
    table.set_properties(
        {"write.update.mode": "merge-on-read", "write.merge.mode": "copy-on-write"}
    )
    table.set_properties({"write.parquet.bloom-filter-enabled.column.id": "true"})
    assert "does not read" not in caplog.text
    with caplog.at_level(logging.WARNING):
        table.set_properties({"write.updat.mode": "merge-on-read", "owner": "me"})
    assert (
        "does not read property 'write.updat.mode'; did you mean write.update.mode?" in caplog.text
    )
    assert "owner" not in caplog.text
    assert nearest_known("write.parquet.bloom-filter-max-byte") != ""
