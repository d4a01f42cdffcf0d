"""Finds the coordinates in columns of well-known binary (WKB), the ISO form with Z and M.

Many values are walked in step: each pass takes one geometry, or one ring, of every value that has
any left. The last few values, such as one with a million parts, are walked one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_Ints = npt.NDArray[np.int64]
_Octets = npt.NDArray[np.uint8]

_POINT, _LINE, _POLYGON, _LAST = 1, 2, 3, 7
# Coordinates of a point by the thousands of the type's number: none, Z, M, Z and M.
_WIDTHS = np.array([2, 3, 3, 4])
# For fewer values, Python takes less time than numpy for the same.
_FEW = 24
# Coordinates are gathered in chunks, because indices take eight times the memory of coordinates.
_CHUNK = 1 << 17


class NotWkbError(ValueError):
    """A value is not ISO WKB of a point, line, polygon or a collection of these."""


class Role:
    """What consecutive points are, as numbers that numpy compares."""

    POINT = 0
    LINE = 1
    EXTERIOR = 2
    HOLE = 3


@dataclass(frozen=True, slots=True)
class Runs:
    """Sequences of points of the same dimensions: single points, lines and rings.

    Attributes:
        points: the points of all sequences: x, y, then z and m if there are.
        lengths: how many points each sequence has, at least one.
        roles: the `Role` of each.
    """

    points: npt.NDArray[np.float64]
    lengths: _Ints
    roles: _Ints
    has_z: bool
    has_m: bool


def runs_of(values: pa.Array) -> Iterator[Runs]:
    """The points of all values that are not null.

    Args:
        values: of a binary type.

    Raises:
        NotWkbError: a value is not WKB.
    """
    if values.null_count:
        values = values.drop_null()
    if not len(values):
        return
    _, offsets_buffer, data_buffer = values.buffers()
    kind = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    offsets = np.frombuffer(offsets_buffer, kind)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    starts, counts, layouts, roles = _walk(data, offsets.astype(np.int64))
    for layout in np.unique(layouts):
        chosen = (layouts == layout) & (counts > 0)
        dtype = np.dtype("<f8" if layout & 4 else ">f8")
        dims = int(layout & 3)
        width = int(_WIDTHS[dims])
        for part in _chunks(counts[chosen] * width):
            lengths = counts[chosen][part]
            points = _gathered(data, starts[chosen][part], lengths, width, dtype)
            yield Runs(points, lengths, roles[chosen][part], dims in (1, 3), dims in (2, 3))


class _Found:
    """Sequences of points: where they start, their lengths, layouts and roles.

    A layout is the thousands of the type's number, and 4 for the little-endian order.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[_Ints, ...]] = [(np.empty(0, np.int64),) * 4]

    def add(self, starts: _Ints, counts: _Ints, layouts: _Ints, role: int) -> None:
        self._parts.append((starts, counts, layouts, np.full(len(starts), role, np.int64)))

    def add_all(self, rows: list[tuple[int, int, int, int]]) -> None:
        if rows:
            self._parts.append(tuple(np.array(rows, np.int64).T))

    def columns(self) -> list[_Ints]:
        return [np.concatenate(each) for each in zip(*self._parts, strict=True)]


def _walk(data: _Octets, offsets: _Ints) -> list[_Ints]:
    found = _Found()
    at, end = offsets[:-1].copy(), offsets[1:]
    # The members of a collection follow it, so that it is enough to count what is still to come.
    pending = np.ones(len(at), np.int64)
    while len(at) > _FEW:
        _step(data, at, end, pending, found)
        goes_on = pending > 0
        if (at[~goes_on] != end[~goes_on]).any():
            raise NotWkbError("octets follow the geometry")
        at, end, pending = at[goes_on], end[goes_on], pending[goes_on]
    rows: list[tuple[int, int, int, int]] = []
    octets = data.data
    for first, last, count in zip(at.tolist(), end.tolist(), pending.tolist(), strict=True):
        _walk_one(octets, first, last, count, rows)
    found.add_all(rows)
    return found.columns()


def _step(data: _Octets, at: _Ints, end: _Ints, pending: _Ints, found: _Found) -> None:
    """Takes the next geometry of each value; moves `at` and `pending` on."""
    _need(at + 5 <= end)
    order = data[at]
    _need(order <= 1)
    is_little = order == 1
    dims, base = np.divmod(_counts(data, at + 1, is_little), 1000)
    _need((dims <= 3) & (base >= _POINT) & (base <= _LAST))
    layouts = dims + 4 * is_little
    sizes = 8 * _WIDTHS[dims]
    at += 5
    pending -= 1
    points = np.flatnonzero(base == _POINT)
    if points.size:
        found.add(at[points], np.ones(len(points), np.int64), layouts[points], Role.POINT)
        at[points] += sizes[points]
    others = np.flatnonzero(base != _POINT)
    if others.size:
        members = _take_counts(data, at, end, others, is_little)
        kinds = base[others]
        lines, polygons = others[kinds == _LINE], others[kinds == _POLYGON]
        found.add(at[lines], members[kinds == _LINE], layouts[lines], Role.LINE)
        at[lines] += members[kinds == _LINE] * sizes[lines]
        _rings(data, at, end, polygons, members[kinds == _POLYGON], (is_little, layouts), found)
        pending[others[kinds > _POLYGON]] += members[kinds > _POLYGON]
    _need(at <= end)


def _rings(
    data: _Octets,
    at: _Ints,
    end: _Ints,
    chosen: _Ints,
    left: _Ints,
    forms: tuple[npt.NDArray[np.bool_], _Ints],
    found: _Found,
) -> None:
    is_little, layouts = forms
    role = Role.EXTERIOR
    while (chosen := chosen[left > 0]).size:
        left = left[left > 0] - 1
        if len(chosen) <= _FEW:
            _last_rings(data, at, end, chosen, left + 1, layouts, role, found)
            return
        counts = _take_counts(data, at, end, chosen, is_little)
        found.add(at[chosen], counts, layouts[chosen], role)
        at[chosen] += counts * 8 * _WIDTHS[layouts[chosen] & 3]
        role = Role.HOLE


def _last_rings(
    data: _Octets,
    at: _Ints,
    end: _Ints,
    chosen: _Ints,
    left: _Ints,
    layouts: _Ints,
    role: int,
    found: _Found,
) -> None:
    rows: list[tuple[int, int, int, int]] = []
    for row, count in zip(chosen.tolist(), left.tolist(), strict=True):
        at[row] = _rings_of_one(
            data.data, int(at[row]), int(end[row]), count, int(layouts[row]), role, rows
        )
    found.add_all(rows)


def _take_counts(
    data: _Octets, at: _Ints, end: _Ints, rows: _Ints, is_little: npt.NDArray[np.bool_]
) -> _Ints:
    _need(at[rows] + 4 <= end[rows])
    counts = _counts(data, at[rows], is_little[rows])
    at[rows] += 4
    return counts


def _counts(data: _Octets, at: _Ints, is_little: npt.NDArray[np.bool_]) -> _Ints:
    little = data[at[:, None] + np.arange(4)].view("<u4")[:, 0]
    counts: _Ints = np.where(is_little, little, little.byteswap()).astype(np.int64)
    return counts


def _need(holds: npt.NDArray[np.bool_]) -> None:
    if not holds.all():
        raise NotWkbError("a value is not the WKB of a geometry")


_COUNTS = (struct.Struct(">I"), struct.Struct("<I"))


def _walk_one(
    data: memoryview, at: int, end: int, pending: int, rows: list[tuple[int, int, int, int]]
) -> None:
    """Appends start, length, layout and role of what is left of one value."""
    while pending:
        pending -= 1
        if at + 9 > end or data[at] > 1:
            raise NotWkbError("a value is not the WKB of a geometry")
        order = data[at]
        dims, base = divmod(_COUNTS[order].unpack_from(data, at + 1)[0], 1000)
        if dims > 3 or not _POINT <= base <= _LAST:
            raise NotWkbError("a value has a geometry of another type")
        layout = dims + 4 * order
        if base == _POINT:
            rows.append((at + 5, 1, layout, Role.POINT))
            at += 5 + 8 * (2 + (dims > 0) + (dims > 2))
            continue
        members = _COUNTS[order].unpack_from(data, at + 5)[0]
        at += 9
        if base == _LINE:
            rows.append((at, members, layout, Role.LINE))
            at += members * 8 * (2 + (dims > 0) + (dims > 2))
        elif base == _POLYGON:
            at = _rings_of_one(data, at, end, members, layout, Role.EXTERIOR, rows)
        else:
            pending += members
    if at != end:
        raise NotWkbError("a value is cut off, or octets follow the geometry")


def _rings_of_one(
    data: memoryview,
    at: int,
    end: int,
    count: int,
    layout: int,
    role: int,
    rows: list[tuple[int, int, int, int]],
) -> int:
    order, dims = divmod(layout, 4)
    for _ in range(count):
        if at + 4 > end:
            raise NotWkbError("a polygon is cut off")
        points = _COUNTS[order].unpack_from(data, at)[0]
        rows.append((at + 4, points, layout, role))
        at += 4 + points * 8 * (2 + (dims > 0) + (dims > 2))
        role = Role.HOLE
    return at


def _chunks(sizes: _Ints) -> Iterator[slice]:
    """Slices of at most `_CHUNK` in all, or of one that is larger."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _CHUNK, "right")))
        yield slice(first, last)
        first = last


def _gathered(
    data: _Octets, starts: _Ints, counts: _Ints, width: int, dtype: np.dtype[np.float64]
) -> npt.NDArray[np.float64]:
    size = 8 * width
    if len(starts) == 1:
        octets = data[starts[0] : starts[0] + counts[0] * size]
        points: npt.NDArray[np.float64] = octets.copy().view(dtype).reshape(-1, width)
        return points.astype(np.float64, copy=False)
    before = np.cumsum(counts) - counts
    at = np.repeat(starts - before * size, counts) + np.arange(counts.sum()) * size
    points = data[at[:, None] + np.arange(size)].view(dtype)
    return points.astype(np.float64, copy=False)
