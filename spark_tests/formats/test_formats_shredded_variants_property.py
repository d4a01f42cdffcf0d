"""Any variants, shredded in any way, are read as they were."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import read_rows, with_id
from built.schemas import optional
from effort import examples
from hypothesis import given, strategies as st
from oracles.variant_reference import (
    PRECISIONS,
    Shape,
    Variant,
    decode,
    decode_metadata,
    names_of,
    shredded_column,
)
from strategies.variants import CONTAINERS, NAMES, SCALARS, VARIANTS

from icebergds.spec.schema import Schema
from icebergds.spec.types import VARIANT

SCHEMA = Schema((optional(1, "v", VARIANT),))


def _shapes_of(variant: Variant, other: st.SearchStrategy[Variant]) -> st.SearchStrategy[Shape]:
    """Shapes that hold all, some or nothing of a variant."""

    def below(inner: Variant) -> st.SearchStrategy[Shape]:
        return st.deferred(lambda: _shapes_of(inner, other))

    match variant:
        case ("null", _):
            shape = st.just(Shape())
        case ("array", elements):
            element = st.sampled_from(elements) if elements else other
            shape = element.flatmap(below).map(lambda e: Shape("array", {"element": e}))
        case ("object", fields):
            some = st.dictionaries(NAMES, other.flatmap(below), max_size=2)
            own = [st.none() | below(inner) for inner in fields.values()]
            shape = st.tuples(some, st.tuples(*own)).map(
                lambda parts: _object_shape(
                    parts[0]
                    | {n: s for n, s in zip(fields, parts[1], strict=True) if s is not None}
                )
            )
        case (name, value):
            shape = st.just(Shape(name, scale=value[1] if name in PRECISIONS else 0))
    return st.just(Shape()) | shape | shape | shape


def _object_shape(fields: dict[str, Shape]) -> Shape:
    return Shape("object", fields) if fields else Shape()


@st.composite
def _columns(draw: st.DrawFn) -> tuple[list[Variant | None], list[list[str]], pa.StructArray]:
    """Variants, the names of each one's dictionary, and the shredded column."""
    first = draw(CONTAINERS)
    shape = draw(_shapes_of(first, SCALARS))
    rows = [first, *draw(st.lists(st.none() | st.just(first) | VARIANTS, max_size=6))]
    rows = draw(st.permutations(rows))
    unused = draw(st.lists(NAMES, max_size=3))
    # Names may be in any order, and some in no variant.
    dictionaries = [draw(st.permutations(sorted(names_of(v) | set(unused)))) for v in rows]
    how = {"width": draw(st.integers(2, 4)), "wide": draw(st.booleans())}
    return rows, dictionaries, shredded_column(rows, dictionaries, shape, **how)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("variants") / "f.parquet"


@examples(1000)
@given(_columns(), st.integers(1, 8))
def test_variants_are_read_however_they_are_shredded(
    path: Path,
    columns: tuple[list[Variant | None], list[list[str]], pa.StructArray],
    batch_size: int,
) -> None:
    variants, dictionaries, column = columns
    field = with_id("v", column.type, 1)
    pq.write_table(pa.table([column], pa.schema([field])), path, store_schema=False)
    rows = [row for (row,) in read_rows(str(path), SCHEMA, batch_size=batch_size)]
    assert [row is None for row in rows] == [variant is None for variant in variants]
    for row, variant, names in zip(rows, variants, dictionaries, strict=True):
        if row is not None:
            assert decode_metadata(row["metadata"]) == names
            assert decode(row["value"], names) == variant
