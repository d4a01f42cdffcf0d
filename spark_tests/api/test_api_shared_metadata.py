"""What a table returns of its metadata cannot be changed: later loads share it."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.api_tables import ids_of, new_table, rows

from icebergds import load_table


def test_metadata_cannot_be_changed_by_what_is_returned(tmp_path: Path) -> None:
    new_table(tmp_path, partition_by="day").append(rows(1, 2, day=1))
    table = load_table(tmp_path / "db" / "t")
    metadata, schema = table.metadata, table.schema()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for shared in (
        metadata.properties,
        metadata.refs,
        metadata.unknown,
        metadata.snapshots_by_id,
        metadata.specs_by_id,
        metadata.schemas_by_id,
        schema.fields_by_id,
        schema.paths_by_id,
        schema.ids_by_name,
        schema.parents_by_id,
        schema.unknown,
        snapshot.summary,
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            shared.clear()  # type: ignore[attr-defined]
    for copied in (table.schemas(), table.specs(), table.sort_orders()):
        copied.clear()  # type: ignore[attr-defined]
    table.history().clear()
    assert ids_of(load_table(tmp_path / "db" / "t"), filter="id = 1") == [1]


def test_a_table_that_is_created_again_at_its_location_is_loaded_anew(tmp_path: Path) -> None:
    first = new_table(tmp_path / "one")
    first.append(rows(1))
    second = new_table(tmp_path / "two")
    second.append(rows(2))
    assert ids_of(load_table(first.location())) == [1]
    one, two = Path(first.location()), Path(second.location())
    one.rename(tmp_path / "away")
    two.rename(one)
    moved = load_table(str(one), location_map={str(two): str(one)})
    assert ids_of(moved) == [2]
