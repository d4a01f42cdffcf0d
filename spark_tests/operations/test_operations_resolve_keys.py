"""Changes by key that delete rows by position at their commit (`write.upsert.mode`)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commit.interleaving import InterleavedOperations
from effort import rounds

from icebergds import RowCounts, Table, load_catalog, load_table
from icebergds.catalog.loaded_table import load_for_write
from icebergds.errors import (
    CorruptFileError,
    InvalidOptionError,
    MissingFileError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.formats.data_file.file_schema import schema_from_arrow
from icebergds.operations.write.delta_commit import commit_delta
from icebergds.operations.write.key_changes import prepare_key_change
from icebergds.operations.write.options import parse_write_options

MODE, LIMIT = "write.upsert.mode", "write.upsert.resolve-limit-bytes"
VERSIONS = pytest.mark.parametrize("version", [2, 3])
_SCHEMA = pa.schema({"id": pa.int32(), "part": pa.string(), "value": pa.int64()})


def new_table(root: Path, version: int = 3, mode: str = "positions", **more: Any) -> Table:
    properties = {"format-version": str(version), MODE: mode, **more.pop("properties", {})}
    catalog = load_catalog("c", warehouse=str(root))
    columns = more.pop("columns", "id int, part string, value bigint")
    return catalog.create_table("db.t", columns, properties=properties, **more)


def rows(*given: tuple[Any, ...]) -> pa.Table:
    columns = list(zip(*given, strict=True)) or [[], [], []]
    return pa.table(
        [pa.array(list(c), f.type) for c, f in zip(columns, _SCHEMA, strict=True)], _SCHEMA
    )


def all_rows(table: Table) -> list[tuple[Any, ...]]:
    found = load_table(table.location()).scan().to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def kinds_of_deletes(table: Table) -> Counter[str]:
    files = load_table(table.location()).inspect.files(columns="content,file_format").to_pylist()
    names = {1: "positions", 2: "keys"}
    return Counter(names[file["content"]] for file in files if file["content"])


def assert_no_file_left_over(table: Table) -> None:
    table = load_table(table.location())
    known = {file["file_path"] for file in table.inspect.all_files().to_pylist()}
    stored = {str(file) for file in Path(table.location(), "data").rglob("*.*") if file.is_file()}
    assert {path.removeprefix("file://") for path in known} >= {
        s for s in stored if not s.endswith(".crc")
    }


# What is changed


@VERSIONS
def test_rows_are_replaced_and_counted(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version)
    table.append(rows((1, "a", 1), (2, "a", 2), (3, "b", 3)))
    assert table.upsert(rows((2, "c", 20), (4, "d", 4)), "id") == RowCounts(inserted=1, updated=1)
    assert all_rows(table) == [(1, "a", 1), (2, "c", 20), (3, "b", 3), (4, "d", 4)]
    assert table.delete_keys(rows((3, "", 0), (9, "", 0)), "id") == RowCounts(deleted=1)
    assert all_rows(table) == [(1, "a", 1), (2, "c", 20), (4, "d", 4)]
    assert kinds_of_deletes(table).keys() == {"positions"}
    assert_no_file_left_over(table)


@VERSIONS
def test_all_rows_of_a_key_are_replaced(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version)
    table.append(rows((1, "a", 1), (1, "a", 2), (2, "a", 3)))
    table.append(rows((1, "b", 4)))
    counts = table.upsert(rows((1, "c", 5), (2, "c", 6)), "id")
    assert counts == RowCounts(updated=2, deleted=2)
    assert all_rows(table) == [(1, "c", 5), (2, "c", 6)]


@VERSIONS
def test_nothing_is_committed_where_no_row_has_the_keys(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version)
    table.append(rows((1, "a", 1)))
    before = table.current_snapshot()
    assert table.delete_keys(rows((2, "", 0)), "id") == RowCounts()
    assert load_table(table.location()).current_snapshot() == before
    assert_no_file_left_over(table)


def test_an_upsert_of_new_keys_is_an_append(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    assert table.upsert(rows((1, "a", 1)), "id") == RowCounts(inserted=1)
    assert table.upsert(rows((2, "a", 1)), "id") == RowCounts(inserted=1)
    assert [each.operation for each in table.snapshots()] == ["append", "append"]
    assert not kinds_of_deletes(table)


@VERSIONS
def test_keys_may_be_null_and_change_partitions(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version, partition_spec="part")
    table.append(rows((1, "a", 1), (None, "b", 2), (None, "c", 3)))
    counts = table.upsert(rows((None, "d", 4), (1, None, 5)), "id")
    assert counts == RowCounts(updated=2, deleted=1)
    assert all_rows(table) == sorted([(None, "d", 4), (1, None, 5)], key=repr)
    # The table needs no unpartitioned spec, which equality deletes would have.
    assert len(table.specs()) == 1


def test_several_columns_make_a_key(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_spec="part")
    table.append(rows((1, "a", 1), (1, None, 2), (2, "a", 3)))
    counts = table.upsert(rows((1, None, 20), (2, "b", 30)), ["id", "part"])
    assert counts == RowCounts(inserted=1, updated=1)
    assert all_rows(table) == [(1, "a", 1), (1, None, 20), (2, "a", 3), (2, "b", 30)]


def test_columns_of_the_key_are_found_by_their_ids(tmp_path: Path) -> None:
    """They were renamed and promoted, and the partition spec has changed."""
    table = new_table(tmp_path, properties={"write.format.default": "parquet"})
    table.append(rows((1, "a", 1), (2, "b", 2)))
    with table.update_schema() as update:
        update.rename_column("id", "key").update_column("key", "bigint")
    with table.update_spec() as update:
        update.add_field("part")
    table.append(rows((3, "c", 3)).rename_columns(["key", "part", "value"]))
    given = rows((1, "z", 10), (3, "z", 30)).rename_columns(["key", "part", "value"])
    assert table.upsert(given, "key") == RowCounts(updated=2)
    assert all_rows(table) == [(1, "z", 10), (2, "b", 2), (3, "z", 30)]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@VERSIONS
def test_every_file_format_is_searched(tmp_path: Path, version: int, file_format: str) -> None:
    table = new_table(tmp_path, version, properties={"write.format.default": file_format})
    table.append(rows(*((at, "a", at) for at in range(100))))
    assert table.upsert(rows((50, "b", 0), (100, "b", 0)), "id") == RowCounts(inserted=1, updated=1)
    assert (50, "b", 0) in all_rows(table)
    assert len(all_rows(table)) == 101


def test_a_changelog_is_applied(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1), (2, "a", 2), (3, "a", 3)))
    changes = rows((1, "b", 10), (2, "a", 2), (4, "n", 4), (4, "n", 5), (3, "x", 0), (3, "x", 30))
    kinds = pa.array(["+U", "-D", "+I", "+U", "-D", "+I"])
    counts = table.delta(changes.append_column("kind", kinds), "kind", "id")
    assert all_rows(table) == [(1, "b", 10), (3, "x", 30), (4, "n", 5)]
    assert counts == RowCounts(inserted=1, updated=2, deleted=1)
    assert kinds_of_deletes(table).keys() == {"positions"}


@VERSIONS
def test_a_changelog_counts_the_rows_that_changed(tmp_path: Path, version: int) -> None:
    """Not its changes: those of a key are one, and it need not be in the table."""
    table = new_table(tmp_path, version)
    table.append(rows((1, "a", 1), (2, "a", 2), (2, "b", 2), (3, "a", 3)))
    before = table.current_snapshot()
    # New, deleted and new, replaced twice, gone, never there, came and went.
    given = [*((4, "+U"), (4, "+U")), *((1, "-D"), (1, "+I")), *((2, "-U"), (2, "+U"))]
    given += [(2, "+U"), (3, "-D"), (8, "-D"), (9, "+I"), (9, "-D"), (5, "+I")]
    changes = rows(*((key, "n", at) for at, (key, _) in enumerate(given)))
    kinds = pa.array([kind for _, kind in given])
    counts = table.delta(changes.append_column("kind", kinds), "kind", "id")
    assert sorted(row[0] for row in all_rows(table)) == [1, 2, 4, 5]
    assert counts == RowCounts(inserted=2, updated=2, deleted=2)
    assert table.current_snapshot().parent_snapshot_id == before.snapshot_id
    counts = table.delta(
        changes.append_column("kind", kinds), "kind", "id", options={MODE: "equality-deletes"}
    )
    assert counts == RowCounts(inserted=1, upserted=3, deleted=3)
    assert not counts.is_exact


def test_the_kinds_of_changes_may_order_them(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1)))
    changes = rows((1, "b", 2), (2, "c", 3)).append_column("kind", pa.array(["+U", "+U"]))
    table.delta(changes, "kind", "id", order_by="KIND")
    assert all_rows(table) == [(1, "b", 2), (2, "c", 3)]


def test_deletes_of_others_are_merged(tmp_path: Path) -> None:
    """A data file has one vector, and rows that equality deletes have deleted stay deleted."""
    table = new_table(tmp_path)
    table.append(rows(*((at, "a", at) for at in range(6))))
    table.delete_keys(rows((0, "", 0)), "id")
    table.delete_keys(rows((1, "", 0)), "id", options={MODE: "equality-deletes"})
    # Whether a row is the first with its key is not known where keys may have deleted rows.
    assert table.upsert(rows((2, "b", 2), (1, "b", 1)), "id") == RowCounts(upserted=2)
    table.delete_keys(rows((3, "", 0)), "id")
    assert all_rows(table) == [(1, "b", 1), (2, "b", 2), (4, "a", 4), (5, "a", 5)]
    assert kinds_of_deletes(table) == {"positions": 1, "keys": 1}
    assert table.verify("rows").is_sound


# Row ids


def row_ids(table: Table) -> dict[Any, int]:
    found = load_table(table.location()).scan(columns="id,_row_id").to_arrow().to_pylist()
    return {row["id"]: row["_row_id"] for row in found}


@pytest.mark.parametrize("mode", ["positions", "auto"])
def test_rows_keep_the_ids_of_those_that_they_replace(tmp_path: Path, mode: str) -> None:
    table = new_table(tmp_path, mode=mode, partition_spec="part")
    table.append(rows((1, "a", 1), (2, "a", 2), (3, "b", 3)))
    before = row_ids(table)
    for value in (20, 21):
        table.upsert(rows((2, "c", value), (None, "d", value), (value, "n", 0)), "id")
    after = row_ids(table)
    assert {key: after[key] for key in before} == before
    assert len(set(after.values())) == len(after) == 6
    assert table.verify("rows").is_sound
    feed = table.changes(
        table.snapshots()[-2].snapshot_id, columns=["id", "_change_type"], compute_updates=True
    )
    kinds = Counter((row["id"], row["_change_type"]) for row in feed.to_arrow().to_pylist())
    pairs = {(key, f"UPDATE_{when}"): 1 for key in (2, None) for when in ("BEFORE", "AFTER")}
    assert kinds == {**pairs, (21, "INSERT"): 1}


def test_inserts_of_a_changelog_have_ids_of_their_own(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1), (2, "a", 2)))
    before = row_ids(table)
    changes = rows((1, "b", 10), (3, "n", 3), (3, "n", 4), (2, "a", 2))
    kinds = pa.array(["+U", "+I", "+U", "-D"])
    table.delta(changes.append_column("kind", kinds), "kind", "id")
    after = row_ids(table)
    assert after.keys() == {1, 3}
    assert after[1] == before[1]
    assert after[3] not in before.values()


def test_a_row_that_keys_have_deleted_does_not_come_back_under_its_id(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1), (2, "a", 2)))
    before = row_ids(table)
    table.upsert(rows((1, "b", 10)), "id", options={MODE: "equality-deletes"})
    live = row_ids(table)[1]
    assert live != before[1]
    table.upsert(rows((1, "c", 11)), "id")
    assert row_ids(table) == {1: live, 2: before[2]}
    table.delete_keys(rows((2, "", 0)), "id", options={MODE: "equality-deletes"})
    table.upsert(rows((2, "c", 20)), "id")
    assert row_ids(table)[2] not in before.values()


@pytest.mark.parametrize("name", ["_row_id", "_ROW_ID"])
def test_a_table_may_have_a_column_of_the_name_of_row_ids(tmp_path: Path, name: str) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1), (2, "a", 2)))
    given = rows((1, "b", 10)).append_column(name, pa.array([7]))
    table.upsert(given, "id", options={"merge-schema": "true"})
    assert all_rows(table) == [(1, "b", 10, 7), (2, "a", 2, None)]
    table.upsert(rows((1, "c", 11), (3, "c", 3)), "id")
    assert all_rows(table) == [(1, "c", 11, None), (2, "a", 2, None), (3, "c", 3, None)]
    assert load_table(table.location()).verify("rows").is_sound


def test_a_row_id_is_never_given_twice(tmp_path: Path) -> None:
    """Another commit gave the row, and with it its id, another key meanwhile."""
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1), (2, "a", 2)))
    transaction = table.transaction()
    transaction.upsert(rows((1, "b", 10)), "id")
    other = load_table(table.location())
    other.delete_keys(rows((1, "", 0)), "id")
    other.append(rows((9, "a", 1)))
    with pytest.raises(ValidationError, match="repeat the operation"):
        transaction.__exit__(None, None, None)
    assert load_table(table.location()).metadata_location == other.metadata_location
    assert_no_file_left_over(table)


@pytest.mark.parametrize("mode", ["positions", "auto"])
def test_a_row_that_others_delete_by_key_meanwhile_does_not_come_back_under_its_id(
    tmp_path: Path, mode: str
) -> None:
    """The row is still in its data file, but an equality delete applies to it."""
    table = new_table(tmp_path, mode=mode)
    table.append(rows((1, "a", 1), (2, "a", 2)))
    before = row_ids(table)
    by_key = {MODE: "equality-deletes"}
    writer = _interrupted_by(
        table, lambda it: it.delete_keys(rows((1, "", 0)), "id", options=by_key)
    )
    with pytest.raises(ValidationError, match="repeat the operation"):
        writer.upsert(rows((1, "b", 10)), "id")
    assert row_ids(table) == {2: before[2]}
    assert_no_file_left_over(table)


def test_a_row_keeps_its_id_if_others_delete_other_rows_by_key_meanwhile(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1), (2, "a", 2), (3, "a", 3)))
    before = row_ids(table)
    by_key = {MODE: "equality-deletes"}
    writer = _interrupted_by(
        table, lambda it: it.delete_keys(rows((2, "", 0)), "id", options=by_key)
    )
    writer.upsert(rows((1, "b", 10)), "id")
    assert all_rows(table) == [(1, "b", 10), (3, "a", 3)]
    assert row_ids(table) == {1: before[1], 3: before[3]}


def test_equality_deletes_by_other_columns_leave_it_unknown_whether_a_row_is_there(
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1), (2, "b", 2)))
    given = {MODE: "equality-deletes"}
    writer = _interrupted_by(
        table, lambda it: it.delete_keys(rows((0, "b", 0)), "part", options=given)
    )
    with pytest.raises(ValidationError, match="repeat the operation"):
        writer.upsert(rows((1, "b", 10)), "id")


def test_a_row_of_a_transaction_has_no_id_that_a_commit_meanwhile_gave_away(tmp_path: Path) -> None:
    """A commit to another branch repeats the steps, and their new rows get later ids."""
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1)))
    with table.manage_snapshots() as manage:
        manage.create_branch("other")
    transaction = table.transaction()
    transaction.append(rows((5, "a", 1)))
    transaction.upsert(rows((5, "b", 2)), "id")
    load_table(table.location()).append(rows((9, "a", 1)), branch="other")
    with pytest.raises(ValidationError, match="repeat the operation"):
        transaction.commit_transaction()
    assert all_rows(table) == [(1, "a", 1)]
    assert_no_file_left_over(table)


def _interrupted_by(table: Table, other: Callable[[Table], object]) -> Table:
    """The table for a writer before whose first commit another one commits."""
    loaded = load_for_write(table._address)
    others = [lambda: other(load_table(table.location()))]
    return Table(table._address, loaded.state, InterleavedOperations(loaded.operations, others))


@pytest.mark.parametrize("mode", ["positions", "auto"])
def test_changed_rows_of_a_changelog_keep_their_ids(tmp_path: Path, mode: str) -> None:
    table = new_table(tmp_path, mode=mode, partition_spec="part")
    table.append(rows((1, "a", 1), (2, "a", 2), (3, "b", 3), (None, "b", 4)))
    before = row_ids(table)
    # Pairs and single changes, into other partitions and back.
    given = [(1, "c", "-U"), (1, "c", "+U"), (1, "a", "+U"), (2, "a", "-D"), (None, "c", "+U")]
    given += [(5, "a", "+U"), (3, "b", "-D"), (3, "b", "+U")]
    changes = rows(*((key, part, at) for at, (key, part, _) in enumerate(given)))
    table.delta(changes.append_column("op", pa.array([op for *_, op in given])), "op", "id")
    after = row_ids(table)
    assert after == {**{key: before[key] for key in (1, 3, None)}, 5: after[5]}
    assert after[5] not in before.values()
    assert load_table(table.location()).verify("rows").is_sound


def change(*given: tuple[Any, str]) -> pa.Table:
    """A changelog of keys and kinds."""
    keys = rows(*((key, "new", 100) for key, _ in given))
    return keys.append_column("op", pa.array([kind for _, kind in given]))


# What others do to the rows 1 to 4 before a changelog updates 1, deletes 2 and inserts 9 or not.
_OTHERS: dict[str, tuple[Callable[[Table], object], bool]] = {
    "upsert of the updated row": (lambda it: it.upsert(rows((1, "other", 7)), "id"), False),
    "upsert of the deleted row": (lambda it: it.upsert(rows((2, "other", 7)), "id"), False),
    "upsert of another row": (lambda it: it.upsert(rows((3, "other", 7)), "id"), False),
    "insert of the deleted key": (lambda it: it.append(rows((2, "other", 7))), False),
    "insert of the updated key": (lambda it: it.append(rows((1, "other", 7))), False),
    "delete of the updated row": (lambda it: it.delete_keys(rows((1, "", 0)), "id"), True),
    "delete of the deleted row": (lambda it: it.delete_keys(rows((2, "", 0)), "id"), False),
    "equality delete of the updated row": (
        lambda it: it.delete_keys(rows((1, "", 0)), "id", options={MODE: "equality-deletes"}),
        True,
    ),
    "equality delete of the deleted row": (
        lambda it: it.delete_keys(rows((2, "", 0)), "id", options={MODE: "equality-deletes"}),
        False,
    ),
    "changelog of the updated row": (lambda it: it.delta(change((1, "+U")), "op", "id"), False),
    "compaction": (lambda it: it.rewrite_data_files(options={"rewrite-all": "true"}), False),
    "overwrite of all": (lambda it: it.overwrite(rows((1, "other", 7))), True),
    "conversion": (lambda it: _delete_and_convert(it), False),
    "rewrite that drops the updated row": (lambda it: it.delete("id IN (1, 4)"), True),
    "rewrite that drops the deleted row": (lambda it: it.delete("id IN (2, 4)"), False),
    "overwrite of the updated row by position": (lambda it: _replace(it, 1), True),
    "overwrite of another row by position": (lambda it: _replace(it, 3), False),
}


def _replace(table: Table, key: int) -> None:
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.overwrite(rows((20 + key, "other", 7)), f"id = {key}")


def _delete_and_convert(table: Table) -> None:
    table.delete_keys(rows((4, "", 0)), "id", options={MODE: "equality-deletes"})
    table.convert_equality_deletes()


@pytest.mark.parametrize("mode", ["positions", "equality-deletes"])
@pytest.mark.parametrize("name", _OTHERS)
@VERSIONS
def test_a_changelog_looks_again_or_conflicts(
    tmp_path: Path, version: int, name: str, mode: str
) -> None:
    """It conflicts only if a row whose id a new one has got is gone."""
    other, is_gone = _OTHERS[name]

    def start(root: Path) -> Table:
        table = new_table(root, version, mode)
        table.append(rows((3, "a", 3), (4, "a", 4)))
        table.append(rows((1, "a", 1), (2, "a", 2)))
        return table

    table, model = start(tmp_path / "t"), start(tmp_path / "model")
    before = all_rows(table)
    other(model)
    left = [row for row in all_rows(model) if row[0] not in (1, 2)]
    writer = _interrupted_by(table, other)
    changes = change((1, "-U"), (1, "+U"), (2, "-D"), (9, "+U"))
    if is_gone and version == 3 and mode == "positions":
        with pytest.raises(ValidationError, match="repeat the operation"):
            writer.delta(changes, "op", "id")
        assert all_rows(table) == all_rows(model) != before
    else:
        writer.delta(changes, "op", "id")
        assert all_rows(table) == sorted([*left, (1, "new", 100), (9, "new", 100)], key=repr)
    assert load_table(table.location()).verify("rows").is_sound
    assert_no_file_left_over(table)


@pytest.mark.parametrize("branch", ["main", "other"])
def test_a_changelog_in_a_transaction_sees_its_own_steps_and_others(
    tmp_path: Path, branch: str
) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1), (2, "a", 2), (3, "a", 3)))
    before = row_ids(table)
    table.manage_snapshots().create_branch("other").commit()
    with table.refresh().transaction() as transaction:
        transaction.append(rows((5, "a", 5)), branch=branch)
        transaction.delta(change((5, "-D"), (1, "+U"), (6, "+U")), "op", "id", branch=branch)
    with load_table(table.location()).transaction() as transaction:
        transaction.delta(change((2, "-U"), (2, "+U"), (7, "+U")), "op", "id", branch=branch)
        load_table(table.location()).append(rows((7, "other", 7)), branch=branch)
    found = load_table(table.location())
    read = found.scan(branch=branch, columns="id,part,_row_id").to_arrow().to_pylist()
    parts = {1: "new", 2: "new", 3: "a", 6: "new", 7: "new"}
    assert sorted((row["id"], row["part"]) for row in read) == list(parts.items())
    ids = {row["id"]: row["_row_id"] for row in read}
    assert {key: ids[key] for key in (1, 2, 3)} == before
    assert found.verify("rows").is_sound


def test_a_reader_that_is_read_once_gives_new_ids(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1)))
    table.upsert(rows((1, "b", 2)).to_reader(), "id")
    assert all_rows(table) == [(1, "b", 2)]
    assert row_ids(table)[1] != 0


# What is chosen


def test_what_is_cheap_is_deleted_by_position(tmp_path: Path) -> None:
    table = new_table(tmp_path, mode="auto")
    table.append(rows(*((at, "a", at) for at in range(1000))))
    counts = table.upsert(rows((1, "b", 1)), "id")
    assert kinds_of_deletes(table) == {"positions": 1}
    told = table.current_snapshot().summary["icebergds.keys-deleted-by"]
    assert told.startswith("positions: ")
    assert told.endswith("limit 16.0 MB")
    assert counts.keys_deleted_by == told
    assert table.append(rows((5000, "a", 1))).keys_deleted_by is None
    table.upsert(rows((2, "b", 1)), "id", options={LIMIT: "1"})
    assert kinds_of_deletes(table) == {"positions": 1, "keys": 1}
    told = table.current_snapshot().summary["icebergds.keys-deleted-by"]
    assert told.startswith("equality-deletes: ")
    assert (1, "b", 1) in all_rows(table)
    assert (2, "b", 1) in all_rows(table)


def test_a_table_that_lists_a_file_twice_gets_equality_deletes(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2, mode="auto")
    table.append(rows((1, "a", 1), (2, "a", 2)))
    (file,) = (Path(table.location()) / "data").glob("*.parquet")
    table.add_files([str(file)], check_duplicate_files=False)
    with pytest.raises(ValidationError, match="more than once"):
        table.upsert(rows((1, "b", 1)), "id", options={MODE: "positions"})
    table.upsert(rows((1, "b", 1)), "id")
    assert kinds_of_deletes(table) == {"keys": 1}
    assert all_rows(table) == [(1, "b", 1), (2, "a", 2), (2, "a", 2)]
    assert_no_file_left_over(table)


def test_the_option_goes_before_the_property(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1)))
    table.upsert(rows((1, "b", 1)), "id", options={MODE: "equality-deletes"})
    assert kinds_of_deletes(table) == {"keys": 1}


# While others commit


def begun(
    table: Table, given: pa.Table, operation: str = "upsert", **more: str
) -> Callable[[], Any]:
    """Writes the files of a change by key; the result commits it."""
    named = {"path": table.location(), "write-operation": "upsert", "upsert-keys": "id", **more}
    options = parse_write_options(named)
    assert options.row_change is not None
    loaded = load_for_write(options.address)
    prepared, task, loaded = prepare_key_change(
        loaded, options, options.row_change, given.schema, schema_from_arrow(given.schema)
    )
    written = task(given.to_batches(), partition_id=0, attempt_id=0)
    return lambda: commit_delta(prepared, [written], loaded)


@VERSIONS
def test_rows_that_others_add_meanwhile_are_replaced_too(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version)
    table.append(rows((1, "a", 1), (2, "a", 2)))
    commit = begun(table, rows((1, "new", 0), (5, "new", 0)))
    table.append(rows((5, "other", 1), (1, "other", 2), (6, "other", 3)))
    commit()
    assert all_rows(table) == [(1, "new", 0), (2, "a", 2), (5, "new", 0), (6, "other", 3)]
    assert table.refresh().current_snapshot().summary["icebergds.rows-updated"] == "2"
    assert table.current_snapshot().summary["icebergds.rows-deleted"] == "1"
    assert_no_file_left_over(table)


@VERSIONS
def test_a_compaction_meanwhile_is_moved_past(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version)
    for at in range(6):
        table.append(rows((at, "a", at)))
    table.delete_keys(rows((0, "", 0)), "id")
    commit = begun(table, rows((1, "new", 0)))
    table.rewrite_data_files(options={"rewrite-all": "true"})
    commit()
    assert all_rows(table) == [(1, "new", 0), *((at, "a", at) for at in range(2, 6))]
    assert table.refresh().verify("rows").is_sound


@VERSIONS
def test_data_files_of_a_new_partition_spec_are_searched_too(tmp_path: Path, version: int) -> None:
    """Keys that were limited to the partitions of the old spec apply to them, too."""
    table = new_table(tmp_path, version, partition_spec="bucket(3, id)")
    table.append(rows((1, "a", 1), (2, "a", 2)))
    commit = begun(table, rows((1, "new", 0)))
    with table.update_spec() as update:
        update.add_field("part")
    table.append(rows((1, "other", 5), (3, "other", 6)))
    commit()
    assert all_rows(table) == [(1, "new", 0), (2, "a", 2), (3, "other", 6)]
    assert table.refresh().verify("rows").is_sound
    assert_no_file_left_over(table)


@VERSIONS
def test_a_change_that_found_no_row_is_not_picked_as_an_append(
    tmp_path: Path, version: int
) -> None:
    table = new_table(tmp_path, version, properties={"write.wap.enabled": "true"})
    table.append(rows((1, "a", 1)))
    table.upsert(rows((2, "staged", 2)), "id", options={"wap.id": "w"})
    staged = table.refresh().snapshots()[-1]
    assert staged.operation == "append"
    table.upsert(rows((2, "main", 2)), "id")
    with pytest.raises(InvalidOptionError, match="a change of rows by key"):
        table.refresh().manage_snapshots().cherry_pick(staged.snapshot_id).commit()
    assert all_rows(table) == [(1, "a", 1), (2, "main", 2)]


def test_vectors_of_others_are_merged(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(*((at, "a", at) for at in range(6))))
    table.append(rows(*((at, "a", at) for at in range(6, 9))))
    commits = [begun(table, rows((at, "new", at))) for at in (1, 2, 7)]
    table.delete_keys(rows((5, "", 0)), "id")
    for commit in commits:
        commit()
    old = [(at, "a", at) for at in (0, 3, 4, 6, 8)]
    assert all_rows(table) == sorted([*old, (1, "new", 1), (2, "new", 2), (7, "new", 7)])
    assert kinds_of_deletes(table) == {"positions": 2}
    assert table.refresh().verify("rows").is_sound
    assert_no_file_left_over(table)


@VERSIONS
def test_a_branch_that_was_rolled_back_gets_the_change(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version)
    table.append(rows((1, "a", 1)))
    first = table.current_snapshot().snapshot_id
    table.upsert(rows((1, "b", 2)), "id")
    commit = begun(table, rows((1, "new", 0)))
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    commit()
    assert all_rows(table) == [(1, "new", 0)]


def test_a_repeated_batch_is_not_resolved_again(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1)))
    once = {"txn-app-id": "app", "txn-version": "1"}
    begun(table, rows((1, "b", 2)), **once)()
    table.append(rows((1, "later", 3)))
    assert begun(table, rows((1, "b", 2)), **once)() is None
    assert all_rows(table) == [(1, "b", 2), (1, "later", 3)]
    assert_no_file_left_over(table)


def test_a_transaction_finds_rows_of_its_own_steps_and_of_others(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1), (2, "a", 2)))
    with table.transaction() as transaction:
        transaction.upsert(rows((1, "b", 10)), "id")
        load_table(table.location()).append(rows((1, "other", 0)))
    assert all_rows(table) == [(1, "b", 10), (2, "a", 2)]
    with table.transaction() as transaction:
        transaction.append(rows((3, "c", 3)))
        transaction.upsert(rows((3, "d", 30), (2, "d", 20)), "id")
    assert all_rows(table) == [(1, "b", 10), (2, "d", 20), (3, "d", 30)]
    assert_no_file_left_over(table)


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows((1, "a", 1)))
    before = load_table(table.location()).metadata_location
    transaction = table.transaction()
    transaction.upsert(rows((1, "b", 10)), "id")
    transaction.__exit__(ValueError, ValueError("something else"), None)
    assert load_table(table.location()).metadata_location == before
    assert_no_file_left_over(table)


# Histories


@VERSIONS
@pytest.mark.parametrize("spec", [None, "part", "bucket(3, id)"])
def test_both_ways_give_the_same_rows(
    tmp_path: Path, version: int, spec: str | None, rng: random.Random
) -> None:
    more = {} if spec is None else {"partition_spec": spec}
    for number in range(rounds("ICEBERGDS_KEYED_HISTORIES", pull=3, nightly=150)):
        table = new_table(tmp_path / str(number), version, "auto", **more)
        model: list[tuple[Any, ...]] = []
        for _ in range(rng.randrange(3, 9)):
            model = _step(table, model, rng)
            assert all_rows(table) == sorted(model, key=repr)
        assert table.verify("rows").is_sound
        assert_no_file_left_over(table)


def _step(table: Table, model: list[Any], rng: random.Random) -> list[Any]:
    """Changes a table in one way; returns the rows that it has then."""
    keys = [*range(12), None]
    chosen = rng.sample(keys, rng.randrange(1, 6))
    given = [(key, rng.choice(["a", "b", None]), rng.randrange(100)) for key in chosen]
    kept = [row for row in model if row[0] not in chosen]
    options = {MODE: rng.choice(["positions", "positions", "auto", "equality-deletes"])}
    if rng.random() < 0.2:
        options |= {MODE: "auto", LIMIT: "1"}
    has_keys = "keys" in kinds_of_deletes(table)
    match rng.randrange(6):
        case 0 | 1:
            table.append(rows(*given))
            return [*model, *given]
        case 2 | 3:
            counts = table.upsert(rows(*given), "id", options=options)
            if counts.upserted == 0:
                updated = len({row[0] for row in model} & set(chosen))
                deleted = len(model) - len(kept) - updated
                assert counts == RowCounts(len(chosen) - updated, updated, deleted)
            else:
                assert options[MODE] != "positions" or has_keys
            return [*kept, *given]
        case 4:
            counts = table.delete_keys(rows(*given), "id", options=options)
            if options[MODE] == "positions" and not has_keys:
                assert counts.deleted == len(model) - len(kept)
            return kept
    table.rewrite_data_files(options={"rewrite-all": "true"})
    return model


# What is refused, and what fails


def test_version_1_has_no_deletes(tmp_path: Path) -> None:
    table = new_table(tmp_path, 1)
    table.append(rows((1, "a", 1)))
    with pytest.raises(UnsupportedFeatureError, match="format version 1"):
        table.upsert(rows((1, "b", 1)), "id")


def test_floats_are_no_keys(tmp_path: Path) -> None:
    table = new_table(tmp_path, columns="id double")
    table.append(pa.table({"id": [1.5]}))
    with pytest.raises(InvalidOptionError, match="cannot be a key"):
        table.upsert(pa.table({"id": [1.5]}), "id")


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(InvalidOptionError, match="one of equality-deletes, positions, auto"):
        table.upsert(rows((1, "b", 1)), "id", options={MODE: "position"})
    with pytest.raises(InvalidOptionError, match="needs 'write-operation'"):
        table.append(rows((1, "b", 1)), options={MODE: "positions"})


def test_more_than_a_given_limit_is_not_read(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(*((at, "a", at) for at in range(1000))))
    before = load_table(table.location()).metadata_location
    with pytest.raises(InvalidOptionError, match=r"1 data file.*, more than .*resolve-limit-bytes"):
        table.upsert(rows((1, "b", 1)), "id", options={LIMIT: "6000"})
    assert load_table(table.location()).metadata_location == before
    assert_no_file_left_over(table)


@pytest.mark.parametrize("mode", ["positions", "auto"])
@pytest.mark.parametrize("is_missing", [True, False])
def test_a_table_with_a_broken_file_stays_as_it_is(
    tmp_path: Path, mode: str, is_missing: bool
) -> None:
    table = new_table(tmp_path, mode=mode)
    table.append(rows((1, "a", 1)))
    table.append(rows((1, "a", 1), (5, "a", 5)))
    file = Path(table.scan().plan_files()[0].file.file_path.removeprefix("file://"))
    data = file.read_bytes()
    file.unlink()
    if not is_missing:
        file.write_bytes(b"PAR1" + bytes(len(data) - 8) + b"PAR1")
    before = load_table(table.location()).metadata_location
    with pytest.raises(MissingFileError if is_missing else CorruptFileError, match=file.name):
        table.upsert(rows((1, "b", 2)), "id")
    assert load_table(table.location()).metadata_location == before
    file.write_bytes(data)
    assert_no_file_left_over(table)
    table.upsert(rows((1, "b", 2)), "id")
    assert all_rows(table) == [(1, "b", 2), (5, "a", 5)]
