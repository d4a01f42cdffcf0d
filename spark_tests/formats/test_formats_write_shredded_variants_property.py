"""Any variants, written shredded, are read as they were, and lie within their bounds."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from built.data_files import read_rows, write_file
from built.rows import record_batch
from built.schemas import optional, required
from effort import examples
from hypothesis import given, strategies as st
from oracles.variant_reference import (
    Variant,
    decode,
    decode_metadata,
    encode,
    encode_metadata,
    names_of,
    same,
)
from strategies.variants import CONTAINERS, NAMES, VARIANTS, like

from icebergds.formats.data_file.variant_bounds import normalized_path
from icebergds.spec.manifest import DataFile
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, VARIANT

SCHEMA = Schema((required(1, "id", LONG), optional(2, "v", VARIANT)))


def values_at(variant: Variant | None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Variant]]:
    """The values in objects, by normalised path."""
    if variant is None or variant[0] == "null":
        return
    yield normalized_path(path), variant
    if variant[0] == "object":
        for name, inner in variant[1].items():
            yield from values_at(inner, (*path, name))


def decoded_bounds(bounds: bytes | None) -> dict[str, Variant]:
    """The bounds of a file by normalised path."""
    if bounds is None:
        return {}
    width = 1 + (bounds[0] >> 6)
    count = int.from_bytes(bounds[1 : 1 + width], "little")
    head = 1 + width * (count + 2)
    size = head + int.from_bytes(bounds[head - width : head], "little")
    kind, fields = decode(bounds[size:], decode_metadata(bounds[:size]))
    assert kind == "object"
    return fields


def check_bounds(file: DataFile, variants: Sequence[Variant | None]) -> None:
    """Every bound holds for all values at its path, which have its type."""
    held: dict[str, list[Variant]] = {}
    for variant in variants:
        for path, value in values_at(variant):
            held.setdefault(path, []).append(value)
    lower = decoded_bounds(file.lower_bounds.get(2))
    upper = decoded_bounds(file.upper_bounds.get(2))
    for path in lower.keys() & upper.keys():
        assert lower[path][0] == upper[path][0]
    for bounds, is_lower in ((lower, True), (upper, False)):
        for path, bound in bounds.items():
            kind, limit = _comparable(bound)
            for value in held[path]:
                name, number = _comparable(value)
                assert name == kind
                assert limit <= number if is_lower else number <= limit


def _comparable(variant: Variant) -> tuple[str, Any]:
    name, value = same(variant)
    if name in ("float", "double"):
        return name, struct.unpack("<d", value)[0]
    return name, value.encode() if name == "string" else value


@st.composite
def _files(draw: st.DrawFn) -> tuple[list[Variant | None], list[dict[str, bytes] | None]]:
    """Variants, and the rows that hold them."""
    first = draw(CONTAINERS | VARIANTS)
    rows = [first, *draw(st.lists(st.none() | like(first) | VARIANTS, max_size=12))]
    rows = draw(st.permutations(rows))
    unused = draw(st.lists(NAMES, max_size=3))
    wide = draw(st.booleans())
    encoded = []
    for variant in rows:
        # Names may be in any order, and some in no variant.
        names = draw(st.permutations(sorted(names_of(variant) | set(unused))))
        metadata = encode_metadata(names, draw(st.integers(2, 4)))
        value = None if variant is None else encode(variant, names, wide=wide)
        encoded.append(None if value is None else {"metadata": metadata, "value": value})
    return rows, encoded


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("variants") / "f.parquet"


@examples(1500)
@given(_files(), st.integers(1, 6), st.booleans(), st.integers(1, 8))
def test_variants_are_the_same_shredded(
    path: Path,
    file: tuple[list[Variant | None], list[dict[str, bytes] | None]],
    sampled: int,
    many_groups: bool,
    batch_size: int,
) -> None:
    variants, encoded = file
    rows = list(enumerate(encoded))
    half = len(rows) // 2
    batches = [record_batch(SCHEMA, rows[:half]), record_batch(SCHEMA, rows[half:])]
    properties = {
        "write.parquet.shred-variants": "true",
        "write.parquet.variant-inference-buffer-size": str(sampled),
        "write.parquet.row-group-size-bytes": "1" if many_groups else "1000000",
    }
    written = write_file(path, SCHEMA, batches, properties)
    found = read_rows(str(path), SCHEMA, batch_size=batch_size)
    assert [at for at, _ in found] == list(range(len(rows)))
    for (_, row), expected, variant in zip(found, encoded, variants, strict=True):
        assert (row is None) == (variant is None)
        if row is not None:
            assert row["metadata"] == expected["metadata"]
            value = decode(row["value"], decode_metadata(row["metadata"]))
            assert same(value) == same(variant)
    check_bounds(written, variants)
