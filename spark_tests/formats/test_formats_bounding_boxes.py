"""Bounds of geometries and geographies are corners of a box that holds all of them.

The boxes of geometries are compared with plain loops over the values that were encoded, those of
geographies with points on their edges.
"""

from __future__ import annotations

import math
import random
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import write_file
from built.rows import record_batch
from built.schemas import optional
from effort import examples
from hypothesis import given, strategies as st
from strategies.geometries import (
    COLLECTION,
    LINE,
    MULTI_POINT,
    POINT,
    POLYGON,
    Shape,
    expected_corners,
    shapes,
    wkb,
)

from icebergds.formats.arrow.bounding_boxes import box_of, corners, covers
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import GeographyType, GeometryType, IcebergType, StructType

GEOMETRY, GEOGRAPHY = GeometryType(), GeographyType()
ALL_FORMATS = [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO]

every_format = pytest.mark.parametrize("file_format", ALL_FORMATS)


def bounds(field_type: IcebergType, values: list[bytes | None]) -> tuple[Any, Any] | None:
    """The bounds of a column as lists of coordinates."""
    found = corners(box_of(field_type, pa.array(values, pa.binary())))
    return None if found is None else (unpacked(found[0]), unpacked(found[1]))


def unpacked(corner: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(corner) // 8}d", corner))


def same(found: Any, expected: Any) -> bool:
    """Whether bounds are equal: NaN is itself, and zeros are equal."""
    return found == expected or (
        None not in (found, expected)
        and np.array_equal(np.array(found), np.array(expected), equal_nan=True)
    )


def points(*coordinates: tuple[float, float]) -> list[bytes | None]:
    return [wkb(Shape(POINT, "xy", True, each)) for each in coordinates]


def line(*coordinates: tuple[float, float]) -> list[bytes | None]:
    return [wkb(Shape(LINE, "xy", False, list(coordinates)))]


def polygon(*ring: tuple[float, float]) -> list[bytes | None]:
    return [wkb(Shape(POLYGON, "xy", True, [[*ring, ring[0]]]))]


# Geometries


@examples(400)
@given(st.lists(st.one_of(st.none(), shapes()), max_size=6), st.sampled_from([1, 30]))
def test_the_box_of_geometries_holds_their_points_and_no_more(
    values: list[Shape | None], times: int
) -> None:
    encoded = [None if shape is None else wkb(shape) for shape in values] * times
    assert same(bounds(GEOMETRY, encoded), expected_corners(values))


@examples(200)
@given(st.lists(shapes(), min_size=1, max_size=3), st.data())
def test_a_column_with_a_value_that_is_not_wkb_has_no_box(
    values: list[Shape], data: st.DataObject
) -> None:
    encoded = [wkb(shape) for shape in values]
    good = data.draw(st.sampled_from(encoded))
    damaged = data.draw(
        st.one_of(
            st.integers(0, len(good) - 1).map(lambda size: good[:size]),
            st.binary(min_size=1, max_size=3).map(lambda more: good + more),
            st.integers(2, 255).map(lambda order: bytes([order]) + good[1:]),
            st.sampled_from([0, 8, 17, 4001, 0x80000001]).map(
                lambda kind: b"\x01" + struct.pack("<I", kind) + good[5:]
            ),
        )
    )
    assert bounds(GEOMETRY, [*encoded, damaged]) is None
    assert bounds(GEOMETRY, [*encoded * 30, damaged, *[damaged] * 30]) is None
    assert bounds(GEOMETRY, [*encoded * 30, damaged]) is None


@examples(200)
@given(st.lists(st.binary(max_size=60), max_size=40))
def test_octets_of_any_kind_are_walked_without_an_error(values: list[bytes]) -> None:
    box_of(GEOMETRY, pa.array(values, pa.binary()))
    box_of(GEOGRAPHY, pa.array(values, pa.large_binary()))


def test_a_value_of_very_many_parts_and_a_long_line_are_walked() -> None:
    many = Shape(
        COLLECTION, "xy", True, [Shape(POINT, "xy", at % 2 == 0, (at, -at)) for at in range(5000)]
    )
    long = Shape(LINE, "xym", True, [(at, at, -7) for at in range(200_000)])
    rings = [[(at, 0.0), (at, 9e9), (at, 0.0)] for at in range(4000)]
    values = [wkb(many), wkb(long), wkb(Shape(POLYGON, "xy", False, rings))]
    assert bounds(GEOMETRY, [*values]) == (
        pytest.approx([0, -4999, math.nan, -7], nan_ok=True),
        pytest.approx([199_999, 9e9, math.nan, -7], nan_ok=True),
    )


def test_dimensions_without_values_are_left_out() -> None:
    point = [wkb(Shape(POINT, "xyzm", True, (1.0, 2.0, math.nan, 3.0)))]
    found = bounds(GEOMETRY, [*point])
    assert found is not None
    assert len(found[0]) == 4
    assert math.isnan(found[0][2])
    flat = [wkb(Shape(POINT, "xyzm", True, (1.0, 2.0, math.nan, math.nan)))]
    assert bounds(GEOMETRY, [*flat]) == ([1, 2], [1, 2])
    assert bounds(GEOMETRY, points((1.0, math.nan), (5.0, math.nan))) is None
    assert bounds(GEOMETRY, points((1.0, math.nan), (math.nan, 3.0))) == ([1, 3], [1, 3])


# Geographies


@examples(200)
@given(
    st.lists(
        st.tuples(st.floats(-180, 180), st.floats(-90, 90), st.floats(allow_nan=False)),
        min_size=1,
        max_size=6,
    )
)
def test_the_box_of_points_on_the_globe_holds_them(found: list[tuple[float, float, float]]) -> None:
    lower, upper = bounds(
        GEOGRAPHY,
        [
            wkb(
                Shape(
                    MULTI_POINT, "xyz", True, [Shape(POINT, "xyz", False, each) for each in found]
                )
            ),
            None,
        ],
    ) or ([], [])
    assert [lower[1:], upper[1:]] == [
        [min(each[at] for each in found) for at in (1, 2)],
        [max(each[at] for each in found) for at in (1, 2)],
    ]
    assert all(holds_point(lower, upper, x, y) for x, y, _ in found)
    # Bounds are longitudes of points.
    assert {lower[0], upper[0]} <= {x for x, _, _ in found}


def holds_point(lower: list[float], upper: list[float], x: float, y: float) -> bool:
    near = 1e-9
    assert {-180 <= corner[0] <= 180 for corner in (lower, upper)} == {True}
    assert -90 <= lower[1] <= upper[1] <= 90
    if lower[0] <= upper[0]:
        is_within = lower[0] - near <= x <= upper[0] + near
    else:
        is_within = x >= lower[0] - near or x <= upper[0] + near
    return is_within and lower[1] - near <= y <= upper[1] + near


def test_a_box_across_180_goes_from_a_greater_to_a_lesser_longitude() -> None:
    fiji = points((179.5, -17.0), (-179.0, -18.0), (178.0, -16.0))
    assert bounds(GEOGRAPHY, fiji) == ([178, -18], [-179, -16])
    assert bounds(GEOMETRY, fiji) == ([-179, -18], [179.5, -16])
    assert bounds(GEOGRAPHY, points((-5.0, 1.0), (5.0, 1.0))) == ([-5, 1], [5, 1])
    # All around the globe, a box across 180 is not better.
    around = points(*[(float(x), 0.0) for x in range(-175, 180, 10)])
    assert bounds(GEOGRAPHY, around) == ([-175, 0], [175, 0])


def on_sphere(x: float, y: float) -> Any:
    x, y = math.radians(x), math.radians(y)
    return np.array([math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y)])


def on_edge(
    start: tuple[float, float], end: tuple[float, float], share: float
) -> tuple[float, ...]:
    """A point of the shortest way, by the rule of sines."""
    first, last = on_sphere(*start), on_sphere(*end)
    angle = math.atan2(float(np.linalg.norm(np.cross(first, last))), float(first @ last))
    if angle < 1e-12:
        return start
    x, y, z = (math.sin((1 - share) * angle) * first + math.sin(share * angle) * last) / math.sin(
        angle
    )
    return math.degrees(math.atan2(y, x)), math.degrees(math.atan2(z, math.hypot(x, y)))


@examples(400)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.floats(-180, 180), st.floats(-89, 89)),
            st.tuples(
                st.sampled_from([-180.0, -179.0, -1e-7, 0.0, 1.0, 100.0, 179.5, 180.0]),
                st.sampled_from([-80.0, 0.0, 45.0, 45.0000001, 88.0]),
            ),
        ),
        min_size=2,
        max_size=4,
    )
)
def test_the_box_of_lines_holds_the_ways_between_their_points(
    found: list[tuple[float, float]],
) -> None:
    known = bounds(GEOGRAPHY, line(*found))
    if known is None:
        # Only ways that may go over a pole have none.
        assert any(abs(abs(a[0] - b[0]) - 180) < 1e-6 for a, b in pairwise(found))
        return
    lower, upper = known
    for start, end in pairwise(found):
        for at in range(21):
            assert holds_point(lower, upper, *on_edge(start, end, at / 20))


def test_the_box_of_a_line_is_not_much_larger_than_the_way() -> None:
    (west, south), (east, north) = bounds(GEOGRAPHY, line((-50.0, 60.0), (50.0, 60.0))) or ((), ())
    assert (west, south, east) == (-50, 60, 50)
    assert north == pytest.approx(on_edge((-50, 60), (50, 60), 0.5)[1], abs=1e-5)
    assert bounds(GEOGRAPHY, line((10.0, 1.0), (10.0, 2.0))) == ([10, 1], [10, 2])
    assert bounds(GEOGRAPHY, line((170.0, 0.0), (-170.0, 0.0))) == ([170, 0], [-170, 0])


@examples(200)
@given(
    st.floats(-180, 180),
    st.floats(-70, 70),
    st.floats(0.001, 15),
    st.integers(3, 9),
    st.integers(0, 2**32),
)
def test_the_box_of_a_polygon_holds_what_is_inside(
    x: float, y: float, radius: float, count: int, seed: int
) -> None:
    def moved(angle: float, share: float) -> tuple[float, float]:
        east = x + share * radius * math.cos(angle)
        return (east + 180) % 360 - 180, y + share * radius * math.sin(angle)

    ring = [moved(2 * math.pi * at / count, 1) for at in range(count)]
    lower, upper = bounds(GEOGRAPHY, polygon(*ring)) or ([], [])
    rnd = random.Random(seed)
    for _ in range(30):
        corner = ring[rnd.randrange(count)], ring[rnd.randrange(count)]
        assert holds_point(lower, upper, *on_edge(*corner, rnd.random()))
    # The same ring the other way round may mean the rest of the globe.
    assert bounds(GEOGRAPHY, polygon(*reversed(ring))) is None


@pytest.mark.parametrize("times", [1, 30])
def test_holes_go_round_the_other_way(times: int) -> None:
    exterior = [(0.0, 0.0), (4.0, 0.0), (4.0, 1e-3), (0.0, 1e-3), (0.0, 0.0)]
    hole = [(1.0, 2e-4), (1.0, 5e-4), (2.0, 5e-4), (1.0, 2e-4)]
    whole = [wkb(Shape(POLYGON, "xy", False, [exterior, hole]))] * times
    assert bounds(GEOGRAPHY, [*whole]) == bounds(GEOGRAPHY, polygon(*exterior[:-1]))
    assert bounds(GEOGRAPHY, [*whole]) is not None
    assert bounds(GEOGRAPHY, [wkb(Shape(POLYGON, "xy", False, [hole, exterior]))]) is None


def test_what_is_not_certain_to_be_within_a_box_has_none() -> None:
    around_the_pole = polygon((0.0, 80.0), (120.0, 80.0), (-120.0, 80.0))
    over_the_pole = line((10.0, 80.0), (-170.0, 80.0))
    wide = polygon((-100.0, -10.0), (0.0, -12.0), (100.0, -10.0), (100.0, 10.0), (-100.0, 10.0))
    open_ring = [wkb(Shape(POLYGON, "xy", True, [[(0, 0), (1, 0), (1, 1)]]))]
    for values in (around_the_pole, over_the_pole, wide, open_ring):
        assert bounds(GEOGRAPHY, [*values]) is None
        assert bounds(GEOMETRY, [*values]) is not None
    assert bounds(GEOGRAPHY, points((181.0, 0.0))) is None
    assert bounds(GEOGRAPHY, points((0.0, 90.5))) is None
    assert bounds(GEOGRAPHY, line((0.0, 0.0), (math.nan, 1.0))) is None


@pytest.mark.parametrize("algorithm", ["vincenty", "thomas", "andoyer", "karney"])
def test_edges_by_other_algorithms_have_no_box(algorithm: str) -> None:
    kind = GeographyType("OGC:CRS84", algorithm)
    assert bounds(kind, points((1.0, 2.0))) == ([1, 2], [1, 2])
    assert bounds(kind, line((1.0, 2.0), (3.0, 4.0))) is None


# Boxes of others


def test_bounds_of_others_are_compared_with_a_box() -> None:
    across = box_of(GEOGRAPHY, pa.array(points((179.0, 1.0), (-179.0, 2.0)), pa.binary()))
    flat = box_of(GEOMETRY, pa.array(points((1.0, 1.0), (3.0, 2.0)), pa.binary()))

    def corner(*values: float) -> bytes:
        return struct.pack(f"<{len(values)}d", *values)

    assert covers(corner(170, 0), corner(-170, 5), across)
    assert covers(corner(-180, 0), corner(180, 5), across)
    assert not covers(corner(-170, 0), corner(170, 5), across)
    assert not covers(corner(179.5, 0), corner(-170, 5), across)
    assert not covers(corner(170, 1.5), corner(-170, 5), across)
    assert covers(corner(0, 0, 9), corner(3, 2, 9), flat)
    assert not covers(corner(2, 0), corner(3, 2), flat)
    # Only boxes of geographies go across 180.
    assert not covers(corner(2, 0), corner(1, 5), flat)
    assert covers(b"POINT", corner(1, 5), flat) is None


# Files


@every_format
@pytest.mark.parametrize("mode", ["none", "counts", "truncate(1)", "truncate(16)", "full"])
def test_files_have_the_boxes_of_their_columns(
    tmp_path: Path, file_format: FileFormat, mode: str
) -> None:
    inner = StructType((optional(4, "h", GEOGRAPHY),))
    schema = Schema(
        (optional(1, "g", GEOMETRY), optional(2, "s", inner), optional(3, "e", GEOMETRY))
    )
    first, last = points((-3.0, 7.0)), points((4.0, -1.0))
    rows = [(first[0], (last[0],), None), (None, None, None), (last[0], (None,), None)]
    written = write_file(
        tmp_path / "f",
        schema,
        [record_batch(schema, rows[:2]), record_batch(schema, rows[2:])],
        {"write.metadata.metrics.default": mode, "write.parquet.row-group-size-bytes": "1"},
        file_format=file_format,
    )
    found = {
        at: (unpacked(lower), unpacked(written.upper_bounds[at]))
        for at, lower in written.lower_bounds.items()
    }
    if mode in ("none", "counts"):
        assert found == {}
    else:
        assert found == {1: ([-3, -1], [4, 7]), 4: ([4, -1], [4, -1])}
    if mode != "none":
        assert written.value_counts[1] == 3
        assert written.null_value_counts[1] == 1


@examples(60)
@given(values=st.lists(st.one_of(st.none(), shapes()), min_size=1, max_size=6))
def test_boxes_are_those_that_arrow_keeps_in_footers(
    values: list[Shape | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("footer") / "f.parquet"
    schema = Schema((optional(1, "g", GEOMETRY),))
    rows = [(None if shape is None else wkb(shape),) for shape in values]
    written = write_file(path, schema, [record_batch(schema, rows)])
    stored = pq.read_metadata(path).row_group(0).column(0).geo_statistics
    if stored is None or None in (stored.xmin, stored.ymin):
        # Arrow keeps no box with an infinite coordinate.
        return
    lower, upper = unpacked(written.lower_bounds[1]), unpacked(written.upper_bounds[1])
    assert (lower[:2], upper[:2]) == ([stored.xmin, stored.ymin], [stored.xmax, stored.ymax])
