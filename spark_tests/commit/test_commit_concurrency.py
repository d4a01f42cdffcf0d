"""Writers at the same time lose nothing and double nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from built.commit_tables import create_table, open_table
from processes import CONTEXT

from icebergds.commit.data_files import Append, FastAppend
from icebergds.commit.replace_partitions import ReplacePartitions


def _write(location: Path, writer: int, commits: int, kind: str) -> None:
    table = open_table(location)
    for number in range(commits):
        file = table.file([writer * 1000 + number], writer)
        match kind:
            case "replace":
                table.commit(ReplacePartitions((file,)))
            case "merge":
                table.commit(Append((file,)))
            case _:
                table.commit(FastAppend((file,)))


@pytest.mark.parametrize("kind", ["fast", "merge"])
@pytest.mark.parametrize("format_version", [2, 3])
def test_threads_lose_no_append(tmp_path: Path, kind: str, format_version: int) -> None:
    properties = {"commit.manifest.min-count-to-merge": "4"}
    table = create_table(tmp_path / "t", properties=properties, format_version=format_version)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda writer: _write(table.location, writer, 5, kind), range(4)))
    assert table.ids() == sorted(w * 1000 + n for w in range(4) for n in range(5))
    snapshots = table.metadata.snapshots
    assert [s.sequence_number for s in snapshots] == list(range(1, 21))
    assert table.head.summary["total-records"] == "20"
    assert table.left_over() == set()
    if format_version == 3:
        ids = [f.entry.data_file.first_row_id for f in table.files()]
        assert len(set(ids)) == 20


def test_processes_lose_no_commit(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t")
    kinds = ["fast", "merge", "replace"]
    writers = [
        CONTEXT.Process(target=_write, args=(table.location, number, 5, kind))
        for number, kind in enumerate(kinds, 1)
    ]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    assert [process.exitcode for process in writers] == [0, 0, 0]
    appended = [w * 1000 + n for w in (1, 2) for n in range(5)]
    assert table.ids() == sorted([*appended, 3004])
    assert len(table.metadata.snapshots) == 15
    assert table.left_over() == set()
