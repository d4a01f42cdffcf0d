"""Shows the health of a table as text."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from icebergds.display import WIDTH, counted, printable, size_text

if TYPE_CHECKING:
    from icebergds.operations.maintenance.health.advice import Advice
    from icebergds.operations.maintenance.health.health import TableHealth

_INDENT = 11
_ROOM = WIDTH - _INDENT
_DAY_MS = 24 * 60 * 60 * 1000


def health_text(health: TableHealth) -> str:
    """The text of `table.health()`: a few lines for each part."""
    lines = ["== Iceberg Health =="]
    for name, texts in health_lines(health):
        wrapped = [line for text in texts for line in wrap(printable(text), _ROOM)]
        lines += [f"{'' if index else name:<{_INDENT}}{text}" for index, text in enumerate(wrapped)]
    return "\n".join(lines)


def health_lines(health: TableHealth) -> Iterator[tuple[str, list[str]]]:
    """The parts of a table, each with its lines."""
    yield "table", [f"{printable(health.table, 60)}, branch {printable(health.branch, 20)}"]
    yield "files", list(_files(health))
    yield "deletes", list(_deletes(health)) or ["none"]
    yield "manifests", [_manifests(health)]
    yield "snapshots", [_snapshots(health)]
    if health.is_healthy:
        yield "advice", ["none: the table is healthy"]
    for number, advice in enumerate(health.advice, start=1):
        yield f"advice {number}", _advice(advice)


def _files(health: TableHealth) -> Iterator[str]:
    files = health.files
    if not files.count:
        yield "none"
        return
    size = size_text(files.size_in_bytes)
    yield f"{counted(files.count, 'data file')}: {size}, {counted(files.rows, 'row')}"
    yield (
        f"{files.small:,} below 75 % and {files.large:,} above 180 % of the target of "
        f"{size_text(files.target_size)}; {files.to_rewrite:,} should be rewritten"
    )
    if files.other_specs:
        specs = counted(len(files.other_specs), "former partition spec")
        yield f"{files.in_other_specs:,} in {specs}"
    if files.unsorted and files.unsorted_bytes is not None:
        yield (
            f"{files.unsorted:,} ({size_text(files.unsorted_bytes)}) not written in the table's "
            "sort order"
        )


def _deletes(health: TableHealth) -> Iterator[str]:
    deletes = health.deletes
    if not deletes.count:
        return
    kinds = (
        (deletes.position_delete_files, "position delete file"),
        (deletes.deletion_vectors, "deletion vector"),
        (deletes.equality_delete_files, "equality delete file"),
    )
    shown = ", ".join(counted(number, noun) for number, noun in kinds if number)
    yield f"{shown}: {size_text(deletes.size_in_bytes)}"
    yield (
        f"{deletes.mean_per_data_file:,.1f} for a data file on average, at most "
        f"{deletes.most_per_data_file:,}"
    )
    if deletes.deleted_rows:
        yield (
            f"{counted(deletes.deleted_rows, 'row')} deleted by position, "
            f"{deletes.deleted_share:.1%} of all, which are in the data files still"
        )
    if deletes.data_files_with_keys:
        keys, files = deletes.equality_keys, deletes.data_files_with_keys
        yield f"{counted(keys, 'key')} compared with rows of {counted(files, 'data file')}"
    if deletes.overhead_bytes:
        size = size_text(deletes.overhead_bytes)
        yield f"a full read reads about {size} for nothing: deleted rows and delete files"
    if deletes.dangling:
        yield f"{deletes.dangling:,} without a data file that they apply to"


def _manifests(health: TableHealth) -> str:
    manifests = health.manifests
    if not manifests.count:
        return "none"
    return (
        f"{manifests.count:,}, of deletes {manifests.of_deletes:,}: "
        f"{size_text(manifests.size_in_bytes)}, {size_text(round(manifests.mean_size))} on "
        f"average; the target is {size_text(manifests.target_size)}"
    )


def _snapshots(health: TableHealth) -> str:
    metadata = health.metadata
    shown = [f"{metadata.snapshots:,}"]
    if metadata.oldest_age_ms is not None:
        shown.append(f"the oldest {metadata.oldest_age_ms / _DAY_MS:,.1f} days old")
        shown.append(f"{metadata.expirable_snapshots:,} may expire")
    if metadata.metadata_bytes is not None:
        shown.append(f"metadata file of {size_text(metadata.metadata_bytes)}")
    return ", ".join(shown)


def _advice(advice: Advice) -> list[str]:
    gain = str(advice.gain)
    return [advice.call, advice.reason, *([f"gain: {gain}"] if gain else [])]
