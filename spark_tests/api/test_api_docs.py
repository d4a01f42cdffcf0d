"""The code on pages of the documentation runs, where it needs no Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from icebergds import load_catalog

_DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", ["tables.md"])
def test_the_code_of_a_page_runs_from_top_to_bottom(tmp_path: Path, page: str) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64()), "region": ["eu"]})
    known = {"rows": rows}
    blocks = _BLOCK.findall((_DOCS / page).read_text())
    assert len(blocks) > 2
    for block in blocks:
        exec(block.replace("s3://bucket", str(tmp_path)).replace("/data/", f"{tmp_path}/"), known)
    table = load_catalog("lake", warehouse=str(tmp_path / "warehouse")).load_table("db.events")
    assert "device" in {field.name for field in table.schema().fields}
    assert set(table.refs()) == {"main", "audit", "first-load", "end-of-year"}
