"""What a task leaves behind: its rows in data files, or nothing."""

from __future__ import annotations

import math
import os
import pickle
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.rows import record_batch
from built.schemas import spec_of
from built.write_plans import OPERATION, files_under, plan_of, rows_of, write
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import InvalidDataError
from icebergds.formats.file_tokens import marked_path
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform, TruncateTransform
from icebergds.spec.types import DOUBLE, INT, LONG, STRING, NestedField
from icebergds.write.rows.fanout import FanoutSettings, FanoutWriter
from icebergds.write.task import WritePlan, write_batches

SCHEMA = Schema(
    (NestedField(1, "row", LONG), NestedField(2, "k", INT), NestedField(3, "s", STRING))
)
BY_K = spec_of((2, IdentityTransform()))
CLUSTERED = FanoutSettings(enabled=False)


def batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    return record_batch(SCHEMA, rows)


def keyed(keys: list[Any], first: int = 0) -> pa.RecordBatch:
    return batch([(first + at, key, "x") for at, key in enumerate(keys)])


def test_rows_of_an_unpartitioned_table_become_one_file(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SCHEMA)
    (file,) = write(plan, keyed([1, 2]), keyed([3], 2), partition_id=4)
    assert [row["k"] for row in rows_of([file])] == [1, 2, 3]
    path = f"{tmp_path}/data/00004-0-{OPERATION}-00000.parquet"
    assert file.file_path == marked_path(path)
    assert (file.spec_id, file.partition, file.record_count) == (0, (), 3)
    assert file.file_size_in_bytes == os.path.getsize(file.file_path)


def test_a_task_without_rows_writes_nothing(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SCHEMA, spec=BY_K)
    assert write(plan) == []
    assert write(plan, keyed([])) == []
    assert files_under(tmp_path) == []


def test_a_plan_goes_over_wires(tmp_path: Path) -> None:
    plan: WritePlan = pickle.loads(pickle.dumps(plan_of(tmp_path, SCHEMA, spec=BY_K)))
    files = write(plan, keyed([2, 1, None, 2]))
    assert {file.partition for file in files} == {(1,), (2,), (None,)}


def test_batches_of_other_layouts_are_matched_anew(tmp_path: Path) -> None:
    turned = pa.record_batch(
        [pa.array(["y"], pa.large_string()), pa.array([1]), pa.array([2], pa.int16())],
        names=["s", "ROW", "k"],
    )
    (file,) = write(plan_of(tmp_path, SCHEMA), keyed([1]), turned, keyed([3], 2))
    assert [tuple(row.values()) for row in rows_of([file])] == [
        (0, 1, "x"),
        (1, 2, "y"),
        (2, 3, "x"),
    ]


def test_files_lie_in_the_directories_of_their_partitions(tmp_path: Path) -> None:
    for file in write(plan_of(tmp_path, SCHEMA, spec=BY_K), keyed([2, 1])):
        assert file.spec_id == BY_K.spec_id
        assert Path(file.file_path).parent == tmp_path / "data" / f"p0={file.partition[0]}"


@pytest.mark.parametrize("file_format", [FileFormat.AVRO, FileFormat.ORC])
def test_files_of_other_formats_have_their_rows_and_names(
    tmp_path: Path, file_format: FileFormat
) -> None:
    plan = plan_of(tmp_path, SCHEMA, spec=BY_K, file_format=file_format)
    files = write(plan, keyed([2, 1, 2]))
    assert sorted(file.record_count for file in files) == [1, 2]
    assert all(file.file_path.endswith(f".{file_format}") for file in files)
    assert all(file.file_format is file_format for file in files)


SETTINGS = st.builds(
    FanoutSettings,
    enabled=st.booleans(),
    max_open_files=st.integers(1, 3),
    max_buffered_bytes=st.sampled_from([1, 100, 2000, 10**8]),
)


@examples(60)
@given(
    batches=st.lists(st.lists(st.none() | st.integers(0, 5), max_size=8), max_size=5),
    fanout=SETTINGS,
    target_size=st.sampled_from([1, 10**9]),
)
def test_every_row_is_written_once_in_its_partition_and_in_order(  # type: ignore[no-untyped-def]
    tmp_path_factory, batches, fanout, target_size
) -> None:
    location = tmp_path_factory.mktemp("table")
    first = 0
    incoming = []
    for keys in batches:
        incoming.append(keyed(keys, first))
        first += len(keys)
    plan = plan_of(
        location,
        SCHEMA,
        spec=spec_of((2, TruncateTransform(2))),
        fanout=fanout,
        target_file_size=target_size,
    )
    files = write(plan, *incoming)
    assert sorted(file.file_path for file in files) == files_under(location)
    seen: dict[Any, list[int]] = {}
    for file in sorted(files, key=lambda file: file.file_path[-13:]):
        rows = rows_of([file])
        assert len(rows) == file.record_count > 0
        for row in rows:
            assert file.partition == (None if row["k"] is None else row["k"] - row["k"] % 2,)
        seen.setdefault(file.partition, []).extend(row["row"] for row in rows)
    assert all(numbers == sorted(numbers) for numbers in seen.values())
    assert sorted(number for numbers in seen.values() for number in numbers) == list(range(first))


def test_fanout_gives_interleaved_partitions_one_file_each(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SCHEMA, spec=BY_K)
    files = write(plan, *(keyed([1, 2, 3, 1, 2, 3], 6 * at) for at in range(20)))
    assert Counter(file.partition for file in files) == {(1,): 1, (2,): 1, (3,): 1}


def test_sorted_partitions_get_one_file_each_without_fanout(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SCHEMA, spec=BY_K, fanout=CLUSTERED)
    files = write(plan, keyed([1, 1, 2]), keyed([2, 2, 3]), keyed([3, 4]))
    assert [file.partition for file in files] == [(1,), (2,), (3,), (4,)]


def test_partitions_that_come_back_without_fanout_get_another_file(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SCHEMA, spec=BY_K, fanout=CLUSTERED)
    wide = "x" * (40 << 20)
    files = write(plan, *(batch([(at, at % 2, wide)]) for at in range(3)))
    assert [file.partition for file in files] == [(0,), (1,), (0,)]


def test_tiny_batches_share_a_row_group(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SCHEMA, spec=BY_K)
    files = write(plan, *(keyed([1, 2], 2 * at) for at in range(300)))
    assert [pq.ParquetFile(file.file_path).num_row_groups for file in files] == [1, 1]


def noise(count: int, seed: int) -> list[str]:
    chooser = random.Random(seed)
    return [f"{chooser.getrandbits(256):064x}" for _ in range(count)]


def test_files_end_near_their_target_size(tmp_path: Path) -> None:
    target = 512 * 1024
    plan = plan_of(tmp_path, SCHEMA, spec=BY_K, target_file_size=target)
    rows = [(at, at % 2, text) for at, text in enumerate(noise(100_000, 1))]
    files = write(plan, *(batch(rows[at : at + 10_000]) for at in range(0, len(rows), 10_000)))
    for key in (0, 1):
        sizes = [file.file_size_in_bytes for file in files if file.partition == (key,)]
        assert len(sizes) > 2
        assert all(0.8 * target < size < 1.2 * target for size in sizes[:-1])
        assert sizes[-1] < 1.2 * target


def open_data_files(directory: Path) -> int:
    """How many files below a directory this process has open."""
    links = (Path(f"/proc/self/fd/{descriptor}") for descriptor in os.listdir("/proc/self/fd"))
    return sum(str(directory) in os.readlink(link) for link in links if link.is_symlink())


def test_no_more_files_are_open_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    write_rows = FanoutWriter.write

    def counted(self: FanoutWriter, rows: Any) -> None:
        write_rows(self, rows)
        counts.append(open_data_files(tmp_path))

    monkeypatch.setattr(FanoutWriter, "write", counted)
    fanout = FanoutSettings(max_open_files=4, max_buffered_bytes=24 << 20)
    plan = plan_of(tmp_path, SCHEMA, spec=BY_K, fanout=fanout)
    files = write(plan, batch([(at, at, "x" * (1 << 20)) for at in range(40)]))
    assert max(counts) == 4
    assert len(files) == len({file.partition for file in files}) == 40


def test_memory_for_rows_is_bounded(tmp_path: Path) -> None:
    """Slices of large batches, and rows in open files, count too."""
    limit = 8 << 20
    fanout = FanoutSettings(max_buffered_bytes=limit)
    plan = plan_of(tmp_path, SCHEMA, spec=BY_K, fanout=fanout)
    text = "x" * 1000

    def blocks() -> Any:
        for at in range(24):
            # One row of a rare partition, and many of a common one.
            yield batch([(at, at, text), *((at, -1, text) for _ in range(33_000))])

    pool = pa.default_memory_pool()
    peaks = []

    def watched() -> Any:
        for incoming in blocks():
            peaks.append(pool.bytes_allocated())
            yield incoming

    before = pool.bytes_allocated()
    files = write_batches(plan, watched(), partition_id=0, attempt_id=0)
    assert sum(file.record_count for file in files) == 24 * 33_001
    # A batch has 33 MB. A few are in work at a time, but not all 24.
    assert max(peaks) - before < 6 * (34 << 20) + limit


# Failure


class InterruptedWriteError(Exception):
    pass


def test_a_failing_task_leaves_no_file_and_its_own_error(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path, SCHEMA, spec=BY_K, fanout=FanoutSettings(max_open_files=2, max_buffered_bytes=1)
    )
    reason = InterruptedWriteError("the source broke")

    def incoming() -> Any:
        yield batch([(at, at, "x" * (8 << 20)) for at in range(6)])
        assert files_under(tmp_path)
        raise reason

    with pytest.raises(InterruptedWriteError) as raised:
        write_batches(plan, incoming(), partition_id=0, attempt_id=0)
    assert raised.value is reason
    assert raised.value.__context__ is None
    assert open_data_files(tmp_path) == 0
    assert files_under(tmp_path) == []


def test_files_that_cannot_be_deleted_do_not_hide_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, SCHEMA)

    def refuse(*_: Any) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(type(plan.io), "delete", refuse)
    monkeypatch.setattr(type(plan.io), "delete_all", refuse)

    def incoming() -> Any:
        yield keyed([1])
        raise InterruptedWriteError

    with pytest.raises(InterruptedWriteError):
        write_batches(plan, incoming(), partition_id=0, attempt_id=0)


def test_files_of_other_attempts_stay_when_one_fails(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SCHEMA)
    (kept,) = write(plan, keyed([1]))

    def incoming() -> Any:
        yield keyed([1])
        raise InterruptedWriteError

    with pytest.raises(InterruptedWriteError):
        write_batches(plan, incoming(), partition_id=0, attempt_id=1)
    assert files_under(tmp_path) == [kept.file_path]


def test_a_null_in_a_required_column_fails_the_task_by_name(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "a", LONG, True),))
    plan = plan_of(tmp_path, schema)
    rows = pa.record_batch([pa.array([None], pa.int64())], names=["a"])
    with pytest.raises(InvalidDataError, match=r"column 'a' of table db\.t is required"):
        write_batches(plan, [rows], partition_id=0, attempt_id=0)
    assert files_under(tmp_path) == []


def test_zeros_of_both_signs_and_nan_have_partitions_of_their_own(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "d", DOUBLE),))
    plan = plan_of(tmp_path, schema, spec=spec_of((1, IdentityTransform())))
    values = [(0.0,), (-0.0,), (math.nan,), (0.0,), (math.nan,)]
    files = write(plan, *(record_batch(schema, [value]) for value in values))
    counts = {repr(file.partition[0]): file.record_count for file in files}
    assert counts == {"0.0": 2, "-0.0": 1, "nan": 2}
    assert len(files) == 3
