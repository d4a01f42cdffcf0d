"""Which files are rewritten, that all rows stay, and what others may do meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import pytest
from built.contents import data_files, live_files, unused_files
from built.delta_tables import BY_DATA, BY_ID, UNPARTITIONED, DeltaTable
from effort import examples
from hypothesis import example, given, strategies as st

from icebergds import RewrittenDataFiles, Table, load_table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.errors import (
    InvalidFilterError,
    InvalidOptionError,
    StorageError,
    ValidationError,
)
from icebergds.operations.maintenance.rewrite.groups import RewrittenGroup, rewrite_group
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.plan import FileGroup
from icebergds.operations.maintenance.rewrite.rewrite_data_files import rewrite_data_files
from icebergds.operations.maintenance.rewrite.task import RewritePlan
from icebergds.operations.runner import LocalRunner, TaskAttempt
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.manifest import FileContent
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.updates.table_updates import AddPartitionSpec, SetDefaultSpec, SetSnapshotRef
from icebergds.testing.faults import Fault, Faults, FaultyOperations, When

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
ALL = {"rewrite-all": "true"}


@dataclass(slots=True)
class Interrupted:
    """Runs tasks in this process; after the first runs, others do something each."""

    others: list[Callable[[], object]]
    here: LocalRunner = field(default_factory=LocalRunner)
    one_by_one: Any = field(default_factory=Lock)

    def run(
        self,
        task: Callable[[_Item, TaskAttempt], _Result],
        items: Sequence[_Item],
        discard: Callable[[], int] | None = None,
    ) -> list[_Result]:
        results = self.here.run(task, items, discard)
        with self.one_by_one:
            if self.others:
                insist(self.others.pop(0))
        return results


def insist(change: Callable[[], object]) -> None:
    """Repeats a change while a commit of the rewrite comes between what it reads and commits."""
    for _ in range(10):
        with suppress(ValidationError):
            change()
            return
    change()


def table_of(
    location: Path, *appends: Sequence[tuple[Any, ...]], version: int = 2, **more: Any
) -> DeltaTable:
    table = DeltaTable(location, version=version, **more)
    for rows in appends:
        table.append(*rows)
    return table


def ten_files(location: Path, **more: Any) -> DeltaTable:
    """A hundred rows (number, number modulo 3) in ten files."""
    return table_of(
        location,
        *([(i, str(i % 3)) for i in range(start, start + 10)] for start in range(0, 100, 10)),
        **more,
    )


def rewrite(
    table: DeltaTable,
    options: dict[str, str] | None = None,
    *,
    where: str | None = None,
    others: Sequence[Callable[[], object]] = (),
) -> RewrittenDataFiles:
    loaded = load_for_write(TableAddress(table.table.metadata.location))
    chosen = RewriteOptions.of(options or {}, loaded.metadata.properties)
    write = WriteOptions.of(loaded.address)
    return rewrite_data_files(loaded, Interrupted(list(others)), write, chosen, where)[0]


def api(table: DeltaTable) -> Table:
    return load_table(table.table.metadata.location)


def add_spec(table: DeltaTable, spec: PartitionSpec) -> None:
    """Makes a spec of one field the default of a table that has another one."""
    fields = (replace(spec.fields[0], field_id=1001),)
    table.table.change(AddPartitionSpec(PartitionSpec(1, fields)), SetDefaultSpec(1))


def numbers(table: DeltaTable) -> list[int]:
    return sorted(row[0] for row in table.rows())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_small_files_become_one_and_rows_stay(tmp_path: Path, version: int) -> None:
    table = ten_files(tmp_path, version=version)
    before = table.rows()
    done = rewrite(table)
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (10, 1)
    assert table.rows() == before
    assert [file.record_count for file in live_files(tmp_path)] == [100]


def test_rows_keep_their_order(tmp_path: Path) -> None:
    table = ten_files(tmp_path)
    rewrite(table)
    assert [row["id"] for row in table.read()] == list(range(100))


def test_partitions_are_rewritten_apart(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    before = table.rows()
    assert rewrite(table).added_data_files_count == 3
    assert table.rows() == before
    assert {file.partition for file in live_files(tmp_path)} == {("0",), ("1",), ("2",)}


def test_few_small_files_are_left_alone(tmp_path: Path) -> None:
    table = table_of(tmp_path, [(1, "a")], [(2, "b")])
    head = table.table.head
    assert rewrite(table) == RewrittenDataFiles()
    assert table.table.head == head


def test_a_table_without_a_snapshot_is_left_alone(tmp_path: Path) -> None:
    assert rewrite(table_of(tmp_path)) == RewrittenDataFiles()


def test_only_files_that_may_match_are_rewritten(tmp_path: Path) -> None:
    table = ten_files(tmp_path)
    assert rewrite(table, where="id >= 50").rewritten_data_files_count == 5
    assert numbers(table) == list(range(100))


def test_new_files_are_near_the_target_size(tmp_path: Path) -> None:
    table = ten_files(tmp_path)
    size = sum(file.file_size_in_bytes for file in live_files(tmp_path)) // 3
    done = rewrite(table, {"target-file-size-bytes": str(size)})
    assert 2 <= done.added_data_files_count <= 4
    assert numbers(table) == list(range(100))


def test_no_more_files_than_asked_for(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    assert rewrite(table, {"max-files-to-rewrite": "15"}).rewritten_data_files_count == 15
    assert numbers(table) == list(range(100))


def test_a_part_of_a_large_group_is_rewritten_if_only_so_many_files_are_asked_for(
    tmp_path: Path,
) -> None:
    table = ten_files(tmp_path)
    assert rewrite(table, {"max-files-to-rewrite": "6"}).rewritten_data_files_count == 6
    assert [file.record_count for file in live_files(tmp_path)].count(60) == 1


def test_one_file_of_a_group_is_not_rewritten_by_itself(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    assert rewrite(table, {"max-files-to-rewrite": "11"}).rewritten_data_files_count == 10


@pytest.mark.parametrize("version", [2, 3])
def test_deleted_rows_are_left_out(tmp_path: Path, version: int) -> None:
    table = ten_files(tmp_path, version=version)
    table.change_where(lambda row: row["id"] % 2 == 0)
    table.keyed("upsert", [table.batch((1, "new"))])
    before = table.rows()
    done = rewrite(table)
    assert table.rows() == before
    assert sum(file.record_count for file in live_files(tmp_path) if not file.content) == 50
    assert done.removed_delete_files_count >= 10


@pytest.mark.parametrize("version", [2, 3])
def test_files_with_many_deleted_rows_are_rewritten(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, [(i, "a") for i in range(10)], version=version)
    table.change_where(lambda row: row["id"] < 2)
    assert rewrite(table).rewritten_data_files_count == 0
    table.change_where(lambda row: row["id"] < 4)
    assert rewrite(table).rewritten_data_files_count == 1
    assert numbers(table) == [4, 5, 6, 7, 8, 9]


def test_files_with_so_many_delete_files_are_rewritten(tmp_path: Path) -> None:
    table = table_of(tmp_path, [(i, "a") for i in range(10)])
    table.keyed("delete", [table.batch((1, "a"))])
    assert rewrite(table, {"delete-file-threshold": "2"}).rewritten_data_files_count == 0
    assert rewrite(table, {"delete-file-threshold": "1"}).rewritten_data_files_count == 1


def test_deletes_by_key_that_no_row_needs_are_removed_if_asked_for(tmp_path: Path) -> None:
    table = ten_files(tmp_path)
    table.keyed("delete", [table.batch((1, "1"))])
    assert rewrite(table).removed_delete_files_count == 0
    done = rewrite(table, {**ALL, "remove-dangling-deletes": "true"})
    assert done.removed_delete_files_count == 1
    assert [file.content for file in live_files(tmp_path)] == [FileContent.DATA]


def test_row_ids_and_last_updates_stay(tmp_path: Path) -> None:
    table = ten_files(tmp_path, version=3)
    table.change_where(lambda row: row["id"] == 7, lambda row: {**row, "data": "changed"})
    names = ("id", "data", "_row_id", "_last_updated_sequence_number")
    before = sorted(tuple(row[name] for name in names) for row in table.read())
    rewrite(table)
    assert sorted(tuple(row[name] for name in names) for row in table.read()) == before
    table.append((200, "later"))
    ids = [row["_row_id"] for row in table.read()]
    assert len(set(ids)) == len(ids)


def test_files_of_other_specs_are_rewritten_to_the_chosen_one(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    add_spec(table, BY_ID)
    before = table.rows()
    assert rewrite(table).rewritten_data_files_count == 30
    assert {file.spec_id for file in live_files(tmp_path)} == {table.table.metadata.default_spec_id}
    assert table.rows() == before


def test_an_unknown_spec_is_refused(tmp_path: Path) -> None:
    table = ten_files(tmp_path)
    with pytest.raises(InvalidOptionError, match=r"'output-spec-id' = 7: .* partition specs 0"):
        rewrite(table, {"output-spec-id": "7"})


def test_newer_deletes_by_key_apply_to_the_new_files(tmp_path: Path) -> None:
    table = ten_files(tmp_path)
    rewrite(table, others=[lambda: table.keyed("upsert", [table.batch((5, "new"))])])
    assert [row for row in table.rows() if row[0] == 5] == [(5, "new")]
    assert numbers(table) == list(range(100))


def test_deletes_by_key_of_another_spec_are_not_lost(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    add_spec(table, BY_ID)

    def delete() -> None:
        table.keyed("delete", [table.batch((4, "1"))], keys=(1, 2), delete_spec=BY_DATA)

    rewrite(table, others=[delete])
    assert {file.spec_id for file in live_files(tmp_path) if not file.content} == {1}
    assert numbers(table) == [i for i in range(100) if i != 4]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_deletes_that_come_meanwhile_are_moved(
    tmp_path: Path, version: int, granularity: str
) -> None:
    table = ten_files(tmp_path, version=version)
    table.change_where(lambda row: row["id"] % 10 == 3, granularity=granularity)

    def delete(number: int) -> Callable[[], object]:
        return lambda: table.change_where(
            lambda row: row["id"] % 10 == number, granularity=granularity
        )

    done = rewrite(table, others=[delete(5), delete(7)])
    assert done.added_data_files_count == 1
    assert numbers(table) == [i for i in range(100) if i % 10 not in (3, 5, 7)]
    assert not unused_files(api(table))


def test_deletes_of_other_rows_move_nothing(tmp_path: Path) -> None:
    table = ten_files(tmp_path, version=3)
    done = rewrite(
        table,
        where="id < 60",
        others=[lambda: table.change_where(lambda row: row["id"] == 77)],
    )
    assert done.rewritten_data_files_count == 6
    assert numbers(table) == [i for i in range(100) if i != 77]


def test_deletes_are_moved_when_files_are_split_among_tasks(tmp_path: Path) -> None:
    rows = [(i, f"{i * 7919 % 100003:020d}") for i in range(20_000)]
    properties = {"write.parquet.row-group-size-bytes": "50000"}
    table = table_of(tmp_path, rows[:12_000], rows[12_000:], version=3, properties=properties)
    size = sum(file.file_size_in_bytes for file in live_files(tmp_path)) // 4
    done = rewrite(
        table,
        {**ALL, "target-file-size-bytes": str(size)},
        others=[lambda: table.change_where(lambda row: row["id"] % 3 == 0)],
    )
    assert done.added_data_files_count > 2
    assert numbers(table) == [i for i in range(20_000) if i % 3]


def test_shuffled_groups_are_rewritten_again_after_deletes(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    loaded = load_for_write(TableAddress(str(tmp_path)))
    others = [lambda: table.change_where(lambda row: row["id"] in (4, 7))]

    def shuffled(loaded: LoadedTable, plan: RewritePlan, group: FileGroup) -> RewrittenGroup:
        return replace(rewrite_group(Interrupted(others), loaded, plan, group), is_shuffled=True)

    options = RewriteOptions.of({"max-concurrent-file-group-rewrites": "1"}, {})
    write = WriteOptions.of(loaded.address)
    done, _ = rewrite_data_files(loaded, LocalRunner(), write, options, None, shuffled)
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (30, 3)
    assert numbers(table) == [i for i in range(100) if i not in (4, 7)]
    assert not unused_files(api(table))


def test_a_file_that_others_rewrote_is_left_to_them_and_the_rest_is_done(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    before = table.rows()
    done = rewrite(table, ALL, others=[lambda: rewrite(table, where="data = '1'")])
    assert table.rows() == before
    # Those of two partitions, and in a second pass the one that others wrote.
    assert done.rewritten_data_files_count == 21
    assert len(live_files(tmp_path)) == 3


def test_what_is_committed_counts_if_the_table_cannot_be_loaded_afterwards(tmp_path: Path) -> None:
    """The partition that others changed is planned again, on the table as it is by then."""
    table = ten_files(tmp_path, spec=BY_DATA)
    before = table.rows()
    loaded = load_for_write(TableAddress(str(tmp_path)))
    # It is loaded for two attempts to commit, and then to plan again.
    faults = Faults([Fault(2, When.BEFORE, StorageError("gone"))], counted=("refresh",))
    loaded = replace(loaded, operations=FaultyOperations(loaded.operations, faults))
    runner = Interrupted([lambda: rewrite(table, where="data = '1'")])
    write, chosen = WriteOptions.of(loaded.address), RewriteOptions.of(ALL, {})
    done, _ = rewrite_data_files(loaded, runner, write, chosen)
    assert done.rewritten_data_files_count == 20
    assert done.failed_data_files_count == 10
    assert table.rows() == before
    assert unused_files(api(table)) == set()


def test_a_partition_that_others_dropped_stays_dropped(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    rewrite(table, others=[lambda: api(table).delete("data = '1'")])
    assert numbers(table) == [i for i in range(100) if i % 3 != 1]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("by_key", [True, False])
def test_rows_whose_delete_is_rolled_back_meanwhile_stay(
    tmp_path: Path, version: int, by_key: bool
) -> None:
    table = ten_files(tmp_path, version=version)
    before = table.table.head.snapshot_id
    if by_key:
        table.keyed("delete", [table.batch((5, "2"))])
    else:
        table.change_where(lambda row: row["id"] == 5)

    def roll_back() -> None:
        table.table.change(SetSnapshotRef("main", SnapshotRef(before, RefType.BRANCH)))

    done = rewrite(table, others=[roll_back])
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (10, 1)
    assert numbers(table) == list(range(100))
    assert not unused_files(api(table))


def test_a_rewrite_goes_on_if_the_snapshot_that_it_read_expires(tmp_path: Path) -> None:
    table = ten_files(tmp_path)

    def expire() -> None:
        table.append((100, "later"))
        table.append((101, "later"))
        api(table).expire_snapshots(older_than=4_000_000_000_000, retain_last=1)

    assert rewrite(table, others=[expire]).rewritten_data_files_count == 12
    assert numbers(table) == list(range(102))
    assert not unused_files(api(table))


def test_without_the_old_sequence_number_newer_deletes_by_key_are_a_conflict(
    tmp_path: Path,
) -> None:
    table = ten_files(tmp_path)
    table.keyed("delete", [table.batch((1, "1"))])
    before = data_files(tmp_path)
    options = {"use-starting-sequence-number": "false"}
    with pytest.raises(ValidationError, match="use-starting-sequence-number"):
        rewrite(table, options, others=[lambda: table.keyed("delete", [table.batch((5, "2"))])])
    assert len(data_files(tmp_path)) == len(before) + 1
    rewrite(table, options)
    assert numbers(table) == [i for i in range(100) if i not in (1, 5)]


def test_partial_progress_commits_what_is_done(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    snapshots = len(table.table.metadata.snapshots)
    done = rewrite(table, {"partial-progress.enabled": "true", "partial-progress.max-commits": "3"})
    assert done.rewritten_data_files_count == 30
    assert len(table.table.metadata.snapshots) == snapshots + 3


def test_with_partial_progress_a_damaged_file_spoils_only_its_group(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    damaged = next(file for file in live_files(tmp_path) if file.partition == ("1",))
    content = Path(damaged.file_path).read_bytes()
    Path(damaged.file_path).write_bytes(b"damaged")
    done = rewrite(table, {"partial-progress.enabled": "true"})
    assert (done.rewritten_data_files_count, done.failed_data_files_count) == (20, 10)
    Path(damaged.file_path).write_bytes(content)
    assert numbers(table) == list(range(100))


def test_a_damaged_file_changes_nothing(tmp_path: Path) -> None:
    table = ten_files(tmp_path, spec=BY_DATA)
    damaged = Path(live_files(tmp_path)[0].file_path)
    content = damaged.read_bytes()
    damaged.write_bytes(b"damaged")
    before, head = data_files(tmp_path), table.table.head
    with pytest.raises(Exception, match=damaged.name):
        rewrite(table)
    damaged.write_bytes(content)
    assert (data_files(tmp_path), table.table.head) == (before, head)


def test_a_branch_is_rewritten_alone(tmp_path: Path) -> None:
    table = ten_files(tmp_path)
    loaded = api(table)
    loaded.append(table.batch((100, "x")), options={"branch": "b", "create-branch": "true"})
    before = loaded.current_snapshot()
    assert loaded.rewrite_data_files(branch="b").rewritten_data_files_count == 11
    assert loaded.current_snapshot() == before
    assert loaded.scan(branch="b").to_arrow().num_rows == 101


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rewrite-al": "true"}, "unknown option 'rewrite-al'; did you mean 'rewrite-all'"),
        ({"min-input-files": "0"}, "'min-input-files' = '0': expected a number above 0"),
        ({"delete-ratio-threshold": "2"}, "'delete-ratio-threshold' = '2': .* at most 1"),
        ({"rewrite-job-order": "size"}, "expected one of none, bytes-asc"),
        ({"min-file-size-bytes": "9999999999"}, "'target-file-size-bytes' = 536870912: .* more"),
    ],
)
def test_wrong_options_are_refused_by_name(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    table = api(ten_files(tmp_path))
    with pytest.raises(InvalidOptionError, match=message):
        table.rewrite_data_files(options=options)


def test_an_unknown_strategy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=r"strategy = 'bin-pack': .* did you mean"):
        api(ten_files(tmp_path)).rewrite_data_files("bin-pack")


@pytest.mark.parametrize("condition", ["id > 3", "id = 3", "data IN ('a', 'b')", "id is null"])
def test_a_condition_that_is_given_first_is_told_from_a_strategy(
    tmp_path: Path, condition: str
) -> None:
    with pytest.raises(InvalidOptionError, match=r"; to rewrite only files .* give it as where="):
        api(ten_files(tmp_path)).rewrite_data_files(condition)


@pytest.mark.parametrize("strategy", ["sort", "zorder"])
@pytest.mark.parametrize("order", ["id, data", "id desc", "id", "zorder(id, data)"])
def test_a_sort_order_that_is_given_second_is_told_from_a_condition(
    tmp_path: Path, strategy: str, order: str
) -> None:
    with pytest.raises(InvalidFilterError, match=r"is a sort order and not a condition: .*order="):
        api(ten_files(tmp_path)).rewrite_data_files(strategy, order)


def test_a_wrong_condition_of_a_sort_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(InvalidFilterError, match="nope"):
        api(ten_files(tmp_path)).rewrite_data_files("sort", "nope = 3")


@pytest.mark.parametrize(
    ("strategy", "sort_order", "message"),
    [
        ("sort", None, r"has no sort order; give one, such as"),
        ("binpack", "id", r"use strategy='sort'"),
        ("zorder", None, r"needs columns"),
        ("zorder", "id desc", r"without transforms and directions"),
        ("hilbert", "id, id", r"named twice"),
        ("hilbert", "zorder(id)", r"the strategy is 'hilbert'"),
        ("sort", "zorder(nope)", r"nope"),
    ],
)
def test_an_order_that_does_not_fit_the_strategy_is_refused(
    tmp_path: Path, strategy: str, sort_order: str | None, message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        api(ten_files(tmp_path)).rewrite_data_files(strategy, sort_order=sort_order)


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (lambda table: table.rewrite_data_files("sort", sort_order="id"), "strategy = 'sort'"),
        (lambda table: table.maintain(strategy="zorder", sort_order="id"), "strategy = 'zorder'"),
        (lambda table: table.update({"id": 2}, "id = 1"), "table.update"),
    ],
)
def test_what_needs_spark_is_named_if_no_session_is_active(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: Callable[[Table], object],
    message: str,
) -> None:
    monkeypatch.setattr("icebergds.spark.session.SparkSession", None)
    with pytest.raises(InvalidOptionError, match=f"^{message} needs Spark, .* pass it as spark="):
        verb(api(ten_files(tmp_path)))


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["append", "upsert", "delete", "update", "rewrite"]), st.integers(2, 5)
    ),
    max_size=3,
)


@examples(40)
@given(
    version=st.sampled_from([2, 3]),
    spec=st.sampled_from([UNPARTITIONED, BY_DATA, BY_ID]),
    granularity=st.sampled_from(["file", "partition"]),
    before=CHANGES,
    meanwhile=CHANGES,
    after=CHANGES,
    target=st.sampled_from([400, 1500, 1 << 20]),
    progress=st.booleans(),
)
# A file all of whose rows were deleted before is rewritten to none.
@example(
    version=2,
    spec=BY_DATA,
    granularity="partition",
    before=[("upsert", 2)],
    meanwhile=[("delete", 2)],
    after=[],
    target=400,
    progress=False,
)
def test_rows_are_those_of_the_same_changes_without_a_rewrite(
    tmp_path_factory: pytest.TempPathFactory,
    version: int,
    spec: PartitionSpec,
    granularity: str,
    before: list[tuple[str, int]],
    meanwhile: list[tuple[str, int]],
    after: list[tuple[str, int]],
    target: int,
    progress: bool,
) -> None:
    table = table_of(tmp_path_factory.mktemp("t"), version=version, spec=spec)
    expected: dict[int, str] = {}
    # A key that was deleted does not come back: its row would be another one.
    new_keys = count(1)

    def change(verb: str, number: int) -> None:
        match verb:
            case "append":
                new = {next(new_keys): str(i % 3) for i in range(number)}
                table.append(*new.items())
                expected.update(new)
            case "upsert" if expected:
                # In the same partition, which is all that keys of a partitioned table mean.
                keys = sorted(expected)[:: number + 1]
                rows = [(key, expected[key]) for key in keys]
                table.keyed("upsert", [table.batch(*rows)], keys=(1, 2))
            case "delete":
                table.change_where(lambda row: row["id"] % number == 0, granularity=granularity)
                for key in [key for key in expected if key % number == 0]:
                    del expected[key]
            case "update":
                table.change_where(
                    lambda row: row["id"] % number == 1,
                    lambda row: {**row, "data": "9"},
                    granularity=granularity,
                )
                expected.update({key: "9" for key in expected if key % number == 1})
            case "rewrite":
                rewrite(table, ALL)

    for start in range(3):
        change("append", 4 + start)
    for verb, number in before:
        change(verb, number)
    options = {
        **ALL,
        "target-file-size-bytes": str(target),
        "partial-progress.enabled": str(progress).lower(),
    }
    kept = {row["id"]: row.get("_row_id") for row in table.read()}
    others = [lambda verb=verb, number=number: change(verb, number) for verb, number in meanwhile]
    rewrite(table, options, others=others)
    assert table.rows() == sorted(expected.items(), key=repr)
    for verb, number in after:
        change(verb, number)
    assert table.rows() == sorted(expected.items(), key=repr)
    upserted = any(verb == "upsert" for verb, _ in (*meanwhile, *after))
    if version == 3 and not upserted:
        now = {row["id"]: row["_row_id"] for row in table.read()}
        assert {key: now[key] for key in kept if key in now} == {
            key: row_id for key, row_id in kept.items() if key in now
        }
