"""Tables whose variants are written shredded: every change keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.api_tables import catalog_in, create_table
from built.schemas import optional, required
from oracles.variant_reference import (
    Variant,
    decode,
    decode_metadata,
    encode,
    encode_metadata,
    names_of,
    same,
)

from icebergds import Table
from icebergds.formats.arrow.types import schema_to_arrow, to_arrow
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, STRING, VARIANT

SCHEMA = Schema((required(1, "id", LONG), optional(2, "v", VARIANT), optional(3, "s", STRING)))
SHRED = {"write__parquet__shred_variants": "true"}


def event(number: int) -> Variant:
    fields: dict[str, Variant] = {
        "a": ("int8", number % 100),
        "price": ("decimal4", (number * 10, 2)) if number % 2 else ("decimal4", (number, 1)),
        "tags": ("array", [("string", f"tag {number}"), ("null", None)]),
        "o": ("object", {"x": ("date", number)}),
    }
    if number % 7 == 0:
        fields["a"] = ("string", str(number))
    if number % 5 == 0:
        fields["rare"] = ("double", number / 2)
    return ("object", fields)


def rows(variants: dict[int, Variant | None]) -> pa.Table:
    encoded = []
    for variant in variants.values():
        names = sorted(names_of(variant), reverse=True)
        encoded.append(
            None
            if variant is None
            else {"metadata": encode_metadata(names), "value": encode(variant, names)}
        )
    columns = [list(variants), encoded, [f"s{key}" for key in variants]]
    target = schema_to_arrow(SCHEMA)
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, target, strict=True)], schema=target
    )


def found(table: Table, **scan: Any) -> dict[int, Any]:
    """What the variants hold, by id."""
    read = table.refresh().scan(**scan).to_arrow().to_pylist()
    return {row["id"]: row["v"] and _held(row["v"]) for row in read}


def _held(value: dict[str, bytes]) -> Any:
    return same(decode(value["value"], decode_metadata(value["metadata"])))


def held(variants: dict[int, Variant | None]) -> dict[int, Any]:
    return {key: same(variant) for key, variant in variants.items()}


def are_shredded(table: Table) -> set[bool]:
    paths = table.scan(columns=["_file"]).to_arrow()["_file"].unique().to_pylist()
    return {"typed_value" in str(pq.read_schema(path).field("v").type) for path in paths}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return create_table(catalog_in(tmp_path), SCHEMA, version=3, **SHRED)


def test_every_change_keeps_variants(table: Table) -> None:
    expected: dict[int, Variant | None] = {i: event(i) for i in range(40)} | {40: None}
    table.append(rows(expected))
    assert are_shredded(table) == {True}
    assert found(table) == held(expected)

    changes = {3: event(300), 40: event(40), 41: ("object", {}), 42: None}
    table.upsert(rows(changes), ["id"])
    expected |= changes
    assert found(table) == held(expected)

    table.append(rows({50: ("null", None)}), options={"shred-variants": "false"})
    expected[50] = ("null", None)
    assert table.rewrite_data_files(options={"rewrite-all": "true"}).rewritten_data_files_count
    assert are_shredded(table) == {True}
    assert found(table) == held(expected)
    assert not list(table.verify(depth="rows").findings)


def test_an_option_of_a_write_shreds(tmp_path: Path) -> None:
    table = create_table(catalog_in(tmp_path), SCHEMA, version=3)
    variants = {i: event(i) for i in range(1, 6)}
    options = {"shred-variants": "true", "variant-inference-buffer-size": "1"}
    table.append(rows(variants), options=options)
    assert are_shredded(table) == {True}
    assert found(table) == held(variants)
    (file,) = table.inspect.files().to_pylist()
    bounds = dict(file["lower_bounds"])[2]
    # The first row alone chooses the fields, and has no other.
    assert b"$['o']['x']" in bounds
    assert b"rare" not in bounds


def test_rows_that_are_rewritten_as_they_are_are_no_changes(table: Table) -> None:
    """Though their bytes differ: each file chooses its own fields."""
    variants = {i: event(i) for i in range(1, 30)}
    table.append(rows(variants), options={"variant-inference-buffer-size": "1"})
    start = table.current_snapshot()
    assert start is not None
    before = table.scan(columns=["v"]).to_arrow()["v"]
    changed = {**variants, 5: event(500)}
    table.overwrite(rows(changed), "id > 0")
    assert table.scan(columns=["v"]).to_arrow()["v"].to_pylist() != before.to_pylist()
    feed = table.changes(start_snapshot_id=start.snapshot_id).to_arrow()
    assert feed["id"].to_pylist() == [5, 5]


def test_other_columns_are_read_without_the_variant(table: Table) -> None:
    variants = {i: event(i) for i in range(20)}
    table.append(rows(variants))
    table.upsert(rows({5: event(6)}), ["id"])
    read = table.refresh().scan("id >= 18 AND s <> 'x'", columns=["s", "id"]).to_arrow()
    assert sorted(read.to_pylist(), key=lambda row: row["id"]) == [
        {"s": "s18", "id": 18},
        {"s": "s19", "id": 19},
    ]
    assert table.scan().count() == 20
    assert table.scan("v IS NULL").count() == 0


def test_files_of_others_have_the_metrics_of_the_columns_after_their_variants(
    tmp_path: Path,
) -> None:
    schema = Schema((optional(1, "v", VARIANT), optional(2, "id", LONG)))
    inside = pa.struct([("value", pa.binary()), ("typed_value", pa.int32())])
    typed = pa.struct([pa.field(name, inside, nullable=False) for name in ("a", "b")])
    variant = pa.struct(
        [
            pa.field("metadata", pa.binary(), nullable=False),
            pa.field("value", pa.binary()),
            pa.field("typed_value", typed),
        ]
    )
    metadata = encode_metadata(["a", "b"])
    values = [
        {"metadata": metadata, "typed_value": {"a": {"typed_value": i}, "b": {"typed_value": -i}}}
        for i in range(10)
    ]
    folder = tmp_path / "files"
    folder.mkdir()
    columns = {"v": pa.array(values, variant), "id": pa.array(range(100, 110), pa.int64())}
    pq.write_table(pa.table(columns), folder / "f.parquet")
    table = create_table(catalog_in(tmp_path), schema, version=3)
    table.add_files(str(folder / "f.parquet"))
    (file,) = table.refresh().inspect.files().to_pylist()
    assert dict(file["lower_bounds"])[2] == (100).to_bytes(8, "little")
    assert dict(file["upper_bounds"])[2] == (109).to_bytes(8, "little")
    assert dict(file["null_value_counts"])[2] == 0
    assert table.scan("id = 105").count() == 1
    assert not list(table.verify(depth="rows").findings)


def test_bounds_of_variants_that_others_wrote_are_no_finding(table: Table) -> None:
    """And neither are ours: they are objects, not values of the column."""
    table.append(rows({i: event(i) for i in range(3)}))
    for depth in ("metadata", "footers", "rows"):
        assert not list(table.verify(depth=depth).findings)


def test_the_type_of_the_column_is_that_of_all_variants(table: Table) -> None:
    table.append(rows({1: event(1)}))
    assert table.scan(columns=["v"]).to_arrow().schema.field("v").type == to_arrow(VARIANT)
