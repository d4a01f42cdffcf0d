"""64-bit Roaring bitmaps in the portable serialisation (Puffin spec: deletion-vector-v1).

A count of 32-bit bitmaps (8 bytes), then for each its key (the positions' upper 32 bits) and the
bitmap. A 32-bit bitmap is a list of containers of 65,536 values, each an array of 16-bit values,
a bitmap of 8,192 bytes or a list of runs. Everything is little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from icebergds.errors import CorruptFileError
from icebergds.formats.positions import PositionSet, bitmap_is_smaller, count_bits

_COOKIE = 12_346
_COOKIE_WITH_RUNS = 12_347
_CONTAINER_VALUES = 1 << 16
_BITMAP_BYTES = _CONTAINER_VALUES // 8
_LARGEST_ARRAY = 4_096
# Fewer containers than this, with runs among them, have no offsets in front.
_OFFSETS_FROM = 4

_Low = npt.NDArray[np.uint16]


def decode_roaring64(data: bytes, source: str) -> PositionSet:
    """The positions of a bitmap that fills `data` exactly.

    Args:
        data: the serialised bitmap.
        source: what holds it, for errors.

    Raises:
        CorruptFileError: the bytes are not such a bitmap, or hold positions of 2^63 and more.
    """
    containers = list(_read_containers(_Input(data, source)))
    if not containers:
        return PositionSet.of(())
    count = sum(container.cardinality for container in containers)
    start, end = containers[0].first, containers[-1].first + _CONTAINER_VALUES
    if bitmap_is_smaller(start, end - 1, count):
        bits = np.zeros((end - start) // 8, dtype=np.uint8)
        for container in containers:
            offset = (container.first - start) // 8
            bits[offset : offset + _BITMAP_BYTES] = container.bits()
        return PositionSet.of_bits(bits, start)
    positions = np.empty(count, dtype=np.int64)
    filled = 0
    for container in containers:
        part = positions[filled : filled + container.cardinality]
        part[:] = container.values()
        part += container.first
        filled += container.cardinality
    return PositionSet(positions)


def encode_roaring64(positions: PositionSet) -> bytes:
    """The set in the portable serialisation, every container in its smallest form."""
    bitmaps: dict[int, list[_Encoded]] = {}
    for start, part in positions.split(_CONTAINER_VALUES):
        container = _encode_container(start >> 16 & 0xFFFF, part - start)
        bitmaps.setdefault(start >> 32, []).append(container)
    out = [struct.pack("<Q", len(bitmaps))]
    for key, containers in bitmaps.items():
        out += (struct.pack("<I", key), *_encode_bitmap32(containers))
    return b"".join(out)


class _Input:
    """A cursor that never reads past the end."""

    def __init__(self, data: bytes, source: str) -> None:
        self.data = memoryview(data)
        self.offset = 0
        self.source = source

    def take(self, count: int) -> memoryview:
        end = self.offset + count
        if end > len(self.data):
            raise self.corrupt(f"needs {count} bytes at {self.offset} of {len(self.data)}")
        self.offset = end
        return self.data[end - count : end]

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def shorts(self, count: int) -> _Low:
        return np.frombuffer(self.take(2 * count), dtype="<u2")

    def corrupt(self, problem: str) -> CorruptFileError:
        return CorruptFileError(f"{self.source}: the Roaring bitmap is damaged: {problem}")


@dataclass(frozen=True, slots=True)
class _ArrayContainer:
    first: int
    cardinality: int
    low: _Low

    def values(self) -> _Low:
        return self.low

    def bits(self) -> npt.NDArray[np.uint8]:
        flags = np.zeros(_CONTAINER_VALUES, dtype=np.bool_)
        flags[self.low] = True
        return np.packbits(flags, bitorder="little")


@dataclass(frozen=True, slots=True)
class _BitmapContainer:
    first: int
    cardinality: int
    packed: npt.NDArray[np.uint8]

    def values(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero(np.unpackbits(self.packed, bitorder="little"))

    def bits(self) -> npt.NDArray[np.uint8]:
        return self.packed


@dataclass(frozen=True, slots=True)
class _RunContainer:
    first: int
    cardinality: int
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    def _flags(self) -> npt.NDArray[np.bool_]:
        steps = np.zeros(_CONTAINER_VALUES + 1, dtype=np.int8)
        steps[self.starts] += 1
        steps[self.ends] -= 1
        return np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)

    def values(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero(self._flags())

    def bits(self) -> npt.NDArray[np.uint8]:
        return np.packbits(self._flags(), bitorder="little")


_Container = _ArrayContainer | _BitmapContainer | _RunContainer


def _read_containers(data: _Input) -> Iterator[_Container]:
    last_key = -1
    for _ in range(data.integer(8)):
        key = data.integer(4)
        if key <= last_key:
            raise data.corrupt(f"key {key} follows key {last_key}")
        if key >> 31:
            raise data.corrupt(f"key {key} stands for positions of 2^63 and more")
        last_key = key
        yield from _read_bitmap32(data, key << 32)
    if data.offset != len(data.data):
        raise data.corrupt(f"{len(data.data) - data.offset} bytes follow its end")


def _read_bitmap32(data: _Input, base: int) -> Iterator[_Container]:
    cookie = data.integer(4)
    runs: npt.NDArray[np.uint8]
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.frombuffer(data.take((count + 7) // 8), dtype=np.uint8)
        runs = np.unpackbits(flags, bitorder="little")[:count]
    elif cookie == _COOKIE:
        count = data.integer(4)
        if count > _CONTAINER_VALUES:
            raise data.corrupt(f"{count} containers")
        runs = np.zeros(count, dtype=np.uint8)
    else:
        raise data.corrupt(f"cookie {cookie} at {data.offset - 4}")
    header = data.shorts(2 * count).astype(np.int64)
    keys, cardinalities = header[::2], header[1::2] + 1
    if (keys[1:] <= keys[:-1]).any():
        raise data.corrupt("container keys do not ascend")
    if cookie == _COOKIE or count >= _OFFSETS_FROM:
        data.take(4 * count)
    for key, cardinality, is_run in zip(
        keys.tolist(), cardinalities.tolist(), runs.tolist(), strict=True
    ):
        yield _read_container(data, base + (key << 16), cardinality, bool(is_run))


def _read_container(data: _Input, first: int, cardinality: int, is_run: bool) -> _Container:
    if is_run:
        pairs = data.shorts(2 * data.integer(2)).astype(np.int64)
        starts = pairs[::2]
        ends = starts + pairs[1::2] + 1
        if (starts[1:] < ends[:-1]).any() or (ends > _CONTAINER_VALUES).any():
            raise data.corrupt(f"runs at position {first} overlap")
        stored = int((ends - starts).sum())
    elif cardinality <= _LARGEST_ARRAY:
        low = data.shorts(cardinality)
        if (low[1:] <= low[:-1]).any():
            raise data.corrupt(f"values at position {first} do not ascend")
        return _ArrayContainer(first, cardinality, low)
    else:
        packed = np.frombuffer(data.take(_BITMAP_BYTES), dtype=np.uint8)
        stored = count_bits(packed)
    if stored != cardinality:
        raise data.corrupt(f"{stored} values at position {first}, declared {cardinality}")
    if is_run:
        return _RunContainer(first, cardinality, starts, ends)
    return _BitmapContainer(first, cardinality, packed)


@dataclass(frozen=True, slots=True)
class _Encoded:
    key: int
    cardinality: int
    is_run: bool
    payload: bytes


def _encode_container(key: int, values: npt.NDArray[np.int64]) -> _Encoded:
    count = len(values)
    breaks = np.flatnonzero(np.diff(values) != 1) + 1
    run_bytes = 2 + 4 * (len(breaks) + 1)
    if run_bytes < min(2 * count, _BITMAP_BYTES):
        starts = values[np.concatenate(([0], breaks))]
        ends = values[np.concatenate((breaks - 1, [count - 1]))]
        pairs = np.column_stack((starts, ends - starts)).astype("<u2")
        return _Encoded(key, count, True, struct.pack("<H", len(starts)) + pairs.tobytes())
    if count <= _LARGEST_ARRAY:
        return _Encoded(key, count, False, values.astype("<u2").tobytes())
    flags = np.zeros(_CONTAINER_VALUES, dtype=np.bool_)
    flags[values] = True
    return _Encoded(key, count, False, np.packbits(flags, bitorder="little").tobytes())


def _encode_bitmap32(containers: list[_Encoded]) -> Iterator[bytes]:
    count = len(containers)
    has_runs = any(container.is_run for container in containers)
    if has_runs:
        flags = np.array([container.is_run for container in containers])
        prefix = struct.pack("<I", _COOKIE_WITH_RUNS | (count - 1) << 16)
        prefix += np.packbits(flags, bitorder="little").tobytes()
    else:
        prefix = struct.pack("<II", _COOKIE, count)
    yield prefix
    for container in containers:
        yield struct.pack("<HH", container.key, container.cardinality - 1)
    if not has_runs or count >= _OFFSETS_FROM:
        offset = len(prefix) + 8 * count
        for container in containers:
            yield struct.pack("<I", offset)
            offset += len(container.payload)
    for container in containers:
        yield container.payload
