"""Measures how the files of a branch are distributed: sizes, rows, deletes, and partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from icebergds.operations.maintenance.rewrite.plan import delete_count
from icebergds.scan.plan.packed_files import PackedFiles
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import partition_path

MOST_PARTITIONS = 20
"""How many partitions are named."""

# Few deletes are counted one by one.
_FEW_DELETES = (0, 1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values are in each of several neighbouring ranges.

    Attributes:
        edges: the first value of each range, and the one after the last range; none without values.
        counts: how many values are in each range.
    """

    edges: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionLayout:
    """The data files of a partition.

    Attributes:
        name: as in the paths of its files, such as `day=2026-08-30`.
        deletes: how many delete files apply to its data files; one that applies to several counts
            for each.
    """

    name: str
    files: int
    rows: int
    size_in_bytes: int
    deletes: int


@dataclass(frozen=True, slots=True)
class FileLayout:
    """How the data files of a branch are distributed.

    Attributes:
        sizes: of files, in bytes.
        rows: of files, before deletes.
        deletes: how many delete files apply to a data file.
        with_deletes: how many data files delete files apply to.
        partitions: how many partitions have data files.
        largest: the largest of them, at most 20, the largest first.
        skew: how many times as large as the mean the largest is; 0 without files.
    """

    sizes: Histogram = Histogram()
    rows: Histogram = Histogram()
    deletes: Histogram = Histogram()
    with_deletes: int = 0
    partitions: int = 0
    largest: tuple[PartitionLayout, ...] = ()
    skew: float = 0.0


def measure_layout(files: PackedFiles, metadata: TableMetadata) -> FileLayout:
    """Measures data files, with the deletes that apply to them."""
    if not files:
        return FileLayout()
    sizes = files.entries.file_size_in_bytes
    rows = np.maximum(files.entries.record_count, 0)
    deletes = files.by_deletes(delete_count)
    partitions, first, numbers = np.unique(
        files.entries.partition_numbers(), return_index=True, return_inverse=True
    )
    # Sums of floats: exact below 2 ** 53.
    counts, *sums = (
        np.bincount(numbers, weights).astype(np.int64) for weights in (None, rows, sizes, deletes)
    )
    nbytes = sums[1]
    order = np.argsort(-nbytes, kind="stable")[:MOST_PARTITIONS]
    names = _names(files.take(first[order]), metadata)
    figures = (column[order].tolist() for column in (counts, *sums))
    mean = float(nbytes.mean())
    return FileLayout(
        sizes=_by_powers_of_two(sizes),
        rows=_by_powers_of_two(rows),
        deletes=_of_deletes(deletes),
        with_deletes=int((deletes > 0).sum()),
        partitions=len(partitions),
        largest=tuple(map(PartitionLayout, names, *figures)),
        skew=round(float(nbytes.max()) / mean, 2) if mean > 0 else 0.0,
    )


def _names(files: PackedFiles, metadata: TableMetadata) -> Iterable[str]:
    kinds = (files.entries.kinds[number] for number in files.entries.kind_numbers.tolist())
    for kind in kinds:
        spec = metadata.specs_by_id[kind.spec_id]
        path = partition_path(spec, metadata.schema(), kind.partition, metadata.schema_history)
        yield path or "all"


def _by_powers_of_two(values: npt.NDArray[np.int64]) -> Histogram:
    exponents = np.frexp(np.maximum(values, 0).astype(np.float64))[1]
    low, high = int(exponents.min()), int(exponents.max())
    counts = np.bincount(exponents - low).tolist()
    edges = [0 if exponent == 0 else 2 ** (exponent - 1) for exponent in range(low, high + 2)]
    return Histogram(tuple(edges), tuple(counts))


def _of_deletes(counts: npt.NDArray[np.int64]) -> Histogram:
    edges = list(_FEW_DELETES)
    most = int(counts.max())
    while edges[-1] <= most:
        edges.append(2 * edges[-1] - 1)
    # Of the few, only as many as there are.
    edges = edges[: max(2, int(np.searchsorted(edges, most, "right")) + 1)]
    return Histogram(tuple(edges), tuple(np.histogram(counts, edges)[0].tolist()))
