"""Random geometries of all kinds, as values and as WKB, and their extents by plain loops."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

POINT, LINE, POLYGON, MULTI_POINT, MULTI_LINE, MULTI_POLYGON, COLLECTION = range(1, 8)

Coordinates = tuple[float, ...]


@dataclass(frozen=True)
class Shape:
    """A geometry.

    Attributes:
        dims: the letters of its coordinates.
        parts: a point; the points of a line; the rings of a polygon; the shapes of a collection.
    """

    kind: int
    dims: str
    is_little: bool
    parts: Any


def wkb(shape: Shape) -> bytes:
    """The ISO form."""
    order = "<" if shape.is_little else ">"
    thousands = {"xy": 0, "xyz": 1000, "xym": 2000, "xyzm": 3000}[shape.dims]
    head = struct.pack(f"{order}BI", shape.is_little, shape.kind + thousands)

    def points(run: list[Coordinates]) -> bytes:
        flat = [value for point in run for value in point]
        return struct.pack(f"{order}I{len(flat)}d", len(run), *flat)

    match shape.kind:
        case 1:
            return head + struct.pack(f"{order}{len(shape.dims)}d", *shape.parts)
        case 2:
            return head + points(shape.parts)
        case 3:
            rings = b"".join(points(ring) for ring in shape.parts)
            return head + struct.pack(f"{order}I", len(shape.parts)) + rings
        case _:
            members = b"".join(wkb(member) for member in shape.parts)
            return head + struct.pack(f"{order}I", len(shape.parts)) + members


def points_of(shape: Shape) -> Iterator[dict[str, float]]:
    """All points, by the letters of their coordinates."""
    match shape.kind:
        case 1:
            yield dict(zip(shape.dims, shape.parts, strict=True))
        case 2:
            yield from (dict(zip(shape.dims, point, strict=True)) for point in shape.parts)
        case 3:
            for ring in shape.parts:
                yield from (dict(zip(shape.dims, point, strict=True)) for point in ring)
        case _:
            for member in shape.parts:
                yield from points_of(member)


def expected_corners(shapes: list[Shape | None]) -> tuple[list[float], list[float]] | None:
    """The corners of the box of geometries, as the specification says; NaN for a z that lacks."""
    found: dict[str, list[float]] = {letter: [] for letter in "xyzm"}
    for shape in shapes:
        for point in [] if shape is None else points_of(shape):
            for letter, value in point.items():
                if not math.isnan(value):
                    found[letter].append(value)
    if not found["x"] or not found["y"]:
        return None
    letters = "xyzm" if found["m"] else "xyz" if found["z"] else "xy"
    return (
        [min(found[letter], default=math.nan) for letter in letters],
        [max(found[letter], default=math.nan) for letter in letters],
    )


_NUMBERS = st.one_of(
    st.sampled_from([math.nan, 0.0, -0.0, 1.5, -180.0, 180.0]), st.floats(width=64)
)


@st.composite
def shapes(draw: st.DrawFn, *, depth: int = 2) -> Shape:
    """Geometries with empty parts, NaN coordinates and members of other dimensions and orders."""
    kind = draw(st.integers(POINT, COLLECTION if depth else POLYGON))
    dims = draw(st.sampled_from(["xy", "xyz", "xym", "xyzm"]))
    points = st.tuples(*[_NUMBERS] * len(dims))
    runs = st.lists(points, max_size=4)
    members = {
        MULTI_POINT: shapes(depth=0).filter(lambda each: each.kind == POINT),
        MULTI_LINE: shapes(depth=0).filter(lambda each: each.kind == LINE),
        MULTI_POLYGON: shapes(depth=0).filter(lambda each: each.kind == POLYGON),
    }
    match kind:
        case 1:
            empty = st.just((math.nan,) * len(dims))
            parts: Any = draw(st.one_of(points, points, empty))
        case 2:
            parts = draw(runs)
        case 3:
            parts = draw(st.lists(runs, max_size=3))
        case _:
            parts = draw(st.lists(members.get(kind, shapes(depth=depth - 1)), max_size=3))
    return Shape(kind, dims, draw(st.booleans()), parts)
