"""Computes bounding boxes of WKB columns (spec: Bounds for Geometry and Geography).

Edges of a geography are geodesics, which leave the box of their ends: the way from Madrid to New
York is north of both. The boxes here hold all of a spherical geography. Where that is not certain,
there is no box: for edges by other algorithms, and for polygons that engines may take for the
larger side of their ring.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.formats.arrow.wkb import NotWkbError, Role, Runs, runs_of
from icebergds.spec.types import GeographyType, GeometryType, IcebergType

_Floats = npt.NDArray[np.float64]
_NAN = math.nan
# Of corners: x and y, with z, with z and m.
_SIZES = (16, 24, 32)
# Error of the greatest latitude of an edge, in degrees: that of short edges, for which it is large.
_SLACK = 1.5e-6
# Edges of so many degrees of longitude may go over a pole.
_HALF_TURN = 180 - 1e-9


@dataclass(frozen=True, slots=True)
class Box:
    """The extent of some geometries, dimension by dimension; NaN if a dimension has no value.

    Attributes:
        least, greatest: x, y, z and m. Those of a geography have x twice: the longitudes from 0 on
            and, as the last, those below 0.
        is_known: whether the extent of every value is known.
    """

    least: tuple[float, ...]
    greatest: tuple[float, ...]
    is_known: bool = True

    def union(self, other: Box | None) -> Box:
        """The box that covers both."""
        if other is None:
            return self
        return Box(
            tuple(map(float, np.fmin(self.least, other.least))),
            tuple(map(float, np.fmax(self.greatest, other.greatest))),
            self.is_known and other.is_known,
        )


def is_geospatial(field_type: IcebergType) -> bool:
    """Whether values are geometries or geographies, whose bounds are corners of boxes."""
    return isinstance(field_type, GeometryType | GeographyType)


def box_of(field_type: IcebergType, values: pa.Array) -> Box:
    """The box of all values that are not null.

    Args:
        field_type: geometry or geography.
        values: of a binary type. The box is not known if one of them is not ISO WKB.
    """
    of_runs = _geography_box if isinstance(field_type, GeographyType) else _geometry_box
    box = _NOTHING[isinstance(field_type, GeographyType)]
    try:
        for runs in runs_of(values):
            box = of_runs(runs, field_type).union(box)
            if not box.is_known:
                break
    except NotWkbError:
        return Box(box.least, box.greatest, is_known=False)
    return box


def corners(box: Box) -> tuple[bytes, bytes] | None:
    """The lower and upper bound of a column; None if there is no box."""
    (x, y, z, m), (x_max, y_max, z_max, m_max) = box.least[:4], box.greatest[:4]
    if len(box.least) > 4:
        x, x_max = _longitudes(box)
    if not box.is_known or math.isnan(x) or math.isnan(y):
        return None
    return _corner(x, y, z, m), _corner(x_max, y_max, z_max, m_max)


def covers(lower: bytes, upper: bytes, box: Box) -> bool | None:
    """Whether a column's bounds leave out no x or y of a box; None if they are not corners.

    A geography's bounds may go across 180, from a greater to a lesser longitude.
    """
    if len(lower) not in _SIZES or len(upper) not in _SIZES:
        return None
    west, south = struct.unpack_from("<2d", lower)
    east, north = struct.unpack_from("<2d", upper)
    if corners(box) is None:
        return True
    is_geography = len(box.least) > 4
    ranges = [(box.least[at], box.greatest[at]) for at in ((0, 4) if is_geography else (0,))]
    is_across = is_geography and west > east
    return bool(south <= box.least[1] and box.greatest[1] <= north) and all(
        math.isnan(least)
        or (west <= least or greatest <= east if is_across else west <= least <= greatest <= east)
        for least, greatest in ranges
    )


_NOTHING = {
    False: Box((_NAN,) * 4, (_NAN,) * 4),
    True: Box((_NAN,) * 5, (_NAN,) * 5),
}
_UNKNOWN = Box((_NAN,) * 5, (_NAN,) * 5, is_known=False)


def _longitudes(box: Box) -> tuple[float, float]:
    """The range; from a greater to a lesser, across 180, if that is narrower and half a turn."""
    (from_0, to_180), (from_180, to_0) = ((box.least[at], box.greatest[at]) for at in (0, 4))
    if math.isnan(from_0) or math.isnan(from_180):
        return float(np.fmin(from_0, from_180)), float(np.fmax(to_180, to_0))
    across_180 = 360 - (from_0 - to_0)
    if across_180 < min(to_180 - from_180, 180):
        return from_0, to_0
    return from_180, to_180


def _corner(x: float, y: float, z: float, m: float) -> bytes:
    if not math.isnan(m):
        return struct.pack("<4d", x, y, z, m)
    return struct.pack("<2d", x, y) if math.isnan(z) else struct.pack("<3d", x, y, z)


def _geometry_box(runs: Runs, _: IcebergType) -> Box:
    least, greatest = _extent(runs.points)
    return Box(_placed(least, runs), _placed(greatest, runs))


def _extent(points: _Floats) -> tuple[_Floats, _Floats]:
    return np.fmin.reduce(points, axis=0), np.fmax.reduce(points, axis=0)


def _placed(values: _Floats, runs: Runs) -> tuple[float, ...]:
    """Values of the dimensions that points have, as x, y, z and m."""
    x, y, *others = map(float, values)
    z = others[0] if runs.has_z else _NAN
    m = others[-1] if runs.has_m else _NAN
    return x, y, z, m


def _geography_box(runs: Runs, field_type: IcebergType) -> Box:
    x, y = runs.points[:, 0], runs.points[:, 1]
    if (np.abs(x) > 180).any() or (np.abs(y) > 90).any():
        return _UNKNOWN
    box = _halves(runs, x, y)
    has_edges = np.repeat((runs.roles > Role.POINT) & (runs.lengths > 1), runs.lengths)
    if not has_edges.any():
        return box
    is_spherical = isinstance(field_type, GeographyType) and field_type.algorithm == "spherical"
    if not is_spherical or np.isnan(runs.points[has_edges, :2]).any():
        return _UNKNOWN
    starts = np.cumsum(runs.lengths) - runs.lengths
    is_start = np.repeat((runs.roles > Role.POINT) & (runs.lengths > 1), runs.lengths)
    is_start[starts + runs.lengths - 1] = False
    at = np.flatnonzero(is_start)
    turns = (x[at + 1] - x[at] + 180) % 360 - 180
    if (np.abs(turns) > _HALF_TURN).any() or not _have_known_sides(runs, starts, at, turns):
        return _UNKNOWN
    return box.union(_edges_box(x[at], y[at], x[at + 1], y[at + 1]))


def _halves(runs: Runs, x: _Floats, y: _Floats) -> Box:
    """The box of points of a geography, without edges."""
    least, greatest = _extent(runs.points)
    east, west = np.where(x >= 0, x, _NAN), np.where(x < 0, x, _NAN)
    (_, *rest), (_, *rest_max) = _placed(least, runs), _placed(greatest, runs)
    return Box(
        (float(np.fmin.reduce(east)), *rest, float(np.fmin.reduce(west))),
        (float(np.fmax.reduce(east)), *rest_max, float(np.fmax.reduce(west))),
    )


def _have_known_sides(
    runs: Runs, starts: npt.NDArray[np.int64], at: npt.NDArray[np.int64], turns: _Floats
) -> bool:
    """Whether it is certain which side of its ring every polygon is.

    Engines take the smaller side or the one to the left. Both are the same if a ring is
    counter-clockwise, does not go around a pole, and is less than half of the globe wide.
    """
    x, y = runs.points[:, 0], runs.points[:, 1]
    is_ring = runs.roles >= Role.EXTERIOR
    ends = starts + runs.lengths - 1
    if (runs.points[starts[is_ring], :2] != runs.points[ends[is_ring], :2]).any():
        return False
    # Longitudes that go on beyond 180, and latitudes, both from the first point of the ring.
    steps = np.zeros(len(x))
    steps[at + 1] = turns
    along = np.cumsum(steps)
    along -= np.repeat(along[starts], runs.lengths)
    up = y - np.repeat(y[starts], runs.lengths)
    around = np.abs(along[ends]) > 180
    width = np.maximum.reduceat(along, starts) - np.minimum.reduceat(along, starts)
    areas = np.zeros(len(x))
    areas[at] = along[at] * up[at + 1] - along[at + 1] * up[at]
    is_left = np.add.reduceat(areas, starts) > 0
    is_exterior = runs.roles == Role.EXTERIOR
    is_single = runs.lengths == 1
    return bool(
        (~is_ring | (~around & (width < 180))).all() and (~is_exterior | is_single | is_left).all()
    )


def _edges_box(x: _Floats, y: _Floats, x_end: _Floats, y_end: _Floats) -> Box:
    """The longitudes and latitudes of edges on a sphere, between points less than 180 apart."""
    crosses_180 = np.abs(x_end - x) > 180
    crosses_0 = ((x < 0) != (x_end < 0)) & ~crosses_180
    crests = np.concatenate([_crests(x, y, x_end, y_end), -_crests(x, -y, x_end, -y_end)])
    on_180, on_0 = (180.0 if crosses_180.any() else _NAN), (0.0 if crosses_0.any() else _NAN)
    south, north = float(np.fmin.reduce(crests)), float(np.fmax.reduce(crests))
    return Box(
        (float(np.fmin(on_180, on_0)), south, _NAN, _NAN, float(np.fmin(-on_180, on_0))),
        (float(np.fmax(on_180, on_0)), north, _NAN, _NAN, float(np.fmax(-on_180, on_0))),
    )


def _crests(x: _Floats, y: _Floats, x_end: _Floats, y_end: _Floats) -> _Floats:
    """The greatest latitudes of edges that have it between their ends; NaN for others."""
    start, end = _on_sphere(x, y), _on_sphere(x_end, y_end)
    cosine = np.sum(start * end, axis=0)
    rises = end[2] - cosine * start[2] > 0
    falls = cosine * end[2] - start[2] < 0
    normal = np.cross(start, end, axis=0)
    level = np.hypot(normal[0], normal[1])
    greatest = np.degrees(np.arctan2(level, np.abs(normal[2])))
    found = np.minimum(greatest + _SLACK, 90)
    return np.where(rises & falls, found, _NAN)


def _on_sphere(x: _Floats, y: _Floats) -> _Floats:
    longitude, latitude = np.radians(x), np.radians(y)
    return np.stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ]
    )
