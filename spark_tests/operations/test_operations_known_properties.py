"""Hints at table properties that are nearly known."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from icebergds import load_catalog


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
