"""Reads stripes with timestamps outside of Arrow's nanoseconds, which end in 1677 and 2262."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set as AbstractSet

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from icebergds.formats.data_file.file_schema import FileColumn, restrict
from icebergds.formats.orc.selection import Selection, leaves_of, select, with_leaves
from icebergds.formats.orc.stripe_copy import TIMESTAMPS, copy_stripe
from icebergds.formats.orc.tail import ColumnType, Stripe, TypeKind, types_of
from icebergds.formats.orc.writer_zones import Seconds, epoch_of, local_times

_MICROS = 1_000_000
_NANOS = 1_000_000_000
_SECONDS_PER_DAY = 86_400
# No sum with an epoch or an offset overflows below.
_MAX_SECONDS = 1 << 62


def read_stripe(
    handle: pa.NativeFile,
    tail: bytes,
    stripe: Stripe,
    columns: Sequence[FileColumn],
    selection: Selection,
) -> list[pa.Array]:
    """The selected columns of a stripe, in the file's order.

    Timestamps are in nanoseconds if all values of a column fit, else in microseconds.

    Args:
        handle: the open file.
        tail: its serialised tail.
        columns: all columns of the file.

    Raises:
        NotImplementedError: the file's compression is not supported.
        ValueError, OSError, pa.ArrowException, zlib.error: the file is damaged.
        ZoneInfoNotFoundError: the time zone of the file's writer is not known here.
    """
    types = types_of(tail)
    ids = _ids_of_leaves(columns, types)
    copy = copy_stripe(handle, tail, stripe, _ids_of_streams(columns, types, selection.leaves))
    times = frozenset(leaf for leaf in selection.leaves if types[ids[leaf]].kind in TIMESTAMPS)

    selected = restrict(columns, selection.leaves)
    arrays = _decode(copy.of_seconds(), selection)
    seconds = dict(leaves_of(selected, arrays))
    counts = {ids[leaf]: len(seconds[leaf]) - seconds[leaf].null_count for leaf in times}

    only_times = select(columns, times)
    if not only_times.leaves <= selection.leaves:
        only_times = selection
    fractions = dict(
        leaves_of(
            restrict(columns, only_times.leaves),
            _decode(copy.of_nanoseconds(counts), only_times),
        )
    )
    replaced = {
        leaf: _timestamps(
            seconds[leaf],
            fractions[leaf],
            "UTC" if types[ids[leaf]].kind == TypeKind.TIMESTAMP_INSTANT else None,
            copy.writer_zone,
        )
        for leaf in times
    }
    return [
        with_leaves(array, column, replaced) for array, column in zip(arrays, selected, strict=True)
    ]


def has_early_local_times(columns: Sequence[FileColumn], arrays: Sequence[pa.Array]) -> bool:
    """Whether there are local times that pyarrow may read wrongly in writers' zones except for UTC.

    It has other offsets from UTC than Java before 1900, and tells times before 1970, which are
    stored rounded up, by the wall clock.
    """
    local_times = (
        array.view(pa.int64())
        for _, array in leaves_of(columns, arrays)
        if pa.types.is_timestamp(array.type) and array.type.tz is None
    )
    earliest = (pc.min(counts).as_py() for counts in local_times)
    return any(count is not None and count < _SECONDS_PER_DAY * _NANOS for count in earliest)


def _decode(file: bytes, selection: Selection) -> list[pa.Array]:
    batch = orc.ORCFile(pa.BufferReader(file)).read_stripe(0, selection.names)
    arrays: list[pa.Array] = batch.columns
    return arrays


def _timestamps(
    stored: pa.Array, fractions: pa.Array, time_zone: str | None, writer_zone: str
) -> pa.Array:
    """Times from their two parts.

    Args:
        stored: seconds since 2015.
        fractions: nanoseconds since 1970 of moments in the first second of 2015.
        time_zone: that of the result; None for local times.
        writer_zone: to which the file relates local times.
    """
    whole = stored.drop_null().to_numpy()
    within = fractions.view(pa.int64()).drop_null().to_numpy() - epoch_of("UTC") * _NANOS
    if len(whole) and max(-int(whole.min()), int(whole.max())) > _MAX_SECONDS:
        raise ValueError("a timestamp does not fit 64 bits")
    zone = writer_zone if time_zone is None else "UTC"
    moments = whole + epoch_of(zone)
    # Writers round the seconds of earlier times up, except for those in the first millisecond.
    moments -= (moments < 0) & (within > 999_999)
    if time_zone is None:
        moments = local_times(moments, zone)
    unit, counts = _counts(moments, within)
    valid = stored.is_valid().to_numpy(zero_copy_only=False)
    out = np.zeros(len(stored), np.int64)
    out[valid] = counts
    return pa.array(out, mask=~valid).view(pa.timestamp(unit, time_zone))


def _counts(moments: Seconds, within: Seconds) -> tuple[str, Seconds]:
    """Nanoseconds if all times fit, else microseconds, rounded down; their counts since 1970."""
    # Arrow's writer stores negative nanoseconds.
    moments, within = moments + within // _NANOS, within % _NANOS
    for unit, per_second in ("ns", _NANOS), ("us", _MICROS):
        counts = moments * per_second + within // (_NANOS // per_second)
        if (counts // per_second == moments).all():
            return unit, counts
    raise ValueError("a timestamp does not fit 64 bits in microseconds")


def _ids_of_leaves(columns: Sequence[FileColumn], types: Sequence[ColumnType]) -> dict[int, int]:
    """The column id of each leaf."""
    return {
        column.leaves[0]: column_id
        for column, column_id in _with_ids(columns, types[0].children, types)
        if not column.children
    }


def _ids_of_streams(
    columns: Sequence[FileColumn], types: Sequence[ColumnType], leaves: AbstractSet[int]
) -> set[int]:
    """The ids of the columns that contain any of the leaves, or lie in one; that of a row is 0."""
    found = {0}
    for column, column_id in _with_ids(columns, types[0].children, types):
        if leaves.isdisjoint(column.leaves):
            continue
        # Unions have no columns here, but they have in the file.
        found |= _at_or_below(column_id, types) if not column.children else {column_id}
    return found


def _with_ids(
    columns: Sequence[FileColumn], ids: Sequence[int], types: Sequence[ColumnType]
) -> Iterator[tuple[FileColumn, int]]:
    """Every column at every level with its id."""
    for column, column_id in zip(columns, ids, strict=True):
        yield column, column_id
        if column.children:
            yield from _with_ids(column.children, types[column_id].children, types)


def _at_or_below(column_id: int, types: Sequence[ColumnType]) -> set[int]:
    below = (_at_or_below(child, types) for child in types[column_id].children)
    return {column_id}.union(*below)
