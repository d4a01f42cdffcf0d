"""Scripts of CALL, for the statements of Java Iceberg's own tests."""

from __future__ import annotations

from collections.abc import Mapping

from sql_cases import SqlCase

_T = "CREATE TABLE {ns}.t (id bigint NOT NULL, data string) USING iceberg"
_A = "INSERT INTO {ns}.t VALUES (1, 'a')"
_B = "INSERT INTO {ns}.t VALUES (2, 'b')"
_ALL = "SELECT * FROM {ns}.t"
_CURRENT = "CREATE OR REPLACE TEMPORARY VIEW {case}_view AS SELECT * FROM {ns}.t WHERE id = 1"
_SEEN = "SELECT * FROM {case}_view"
_CHANGES = "SELECT * FROM {case}_changes"
_SOURCE = "(id bigint, name string, dept string, subdept string)"
_PEOPLE = (
    "(1, 'John Doe', 'hr', 'communications'), (2, 'Jane Doe', 'hr', 'salary'), "
    "(3, 'Matt Doe', 'hr', null), (4, 'Will Doe', 'facilities', 'all')"
)


def _call(call: str) -> str:
    return f"CALL lake.system.{call}"


def _wrong(procedure: str, *calls: str) -> tuple[str, ...]:
    """Calls that are wrong in the way of every procedure, and others."""
    general = (
        f"CALL lake.custom.{procedure}('n', 't')",
        _call(f"{procedure}()"),
        _call(f"{procedure}('')"),
        _call(f"{procedure}('n', table => 't')"),
        _call(f"{procedure}(table => 't', tAbLe => 't')"),
    )
    return (*general, *(_call(call) for call in calls))


def _changelog(
    columns: str, *statements: str, clauses: str = "", differs: Mapping[int, str] | None = None
) -> SqlCase:
    create = f"CREATE TABLE {{ns}}.t ({columns}) USING iceberg {clauses}"
    return SqlCase((create, *statements), differs=differs or {})


def _view(arguments: str = "") -> str:
    more = f", {arguments}" if arguments else ""
    return _call(
        f"create_changelog_view(table => '{{case}}.t', changelog_view => '{{case}}_changes'{more})"
    )


def _added(
    partitioning: str, target: str, *statements: str, differs: Mapping[int, str] | None = None
) -> SqlCase:
    return SqlCase(
        (
            f"CREATE TABLE {{case}}_source {_SOURCE} USING parquet {partitioning} "
            "LOCATION '{dir}/source'",
            f"INSERT INTO {{case}}_source (id, name, dept, subdept) VALUES {_PEOPLE}",
            f"CREATE TABLE {{ns}}.t {_SOURCE} USING iceberg {target}",
            *statements,
            "DROP TABLE {case}_source",
        ),
        differs=differs or {},
    )


def _small_files(
    clauses: str = "", columns: str = "c1 int, c2 string, c3 string"
) -> tuple[str, ...]:
    return (
        f"CREATE TABLE {{ns}}.t ({columns}) USING iceberg {clauses}",
        *("INSERT INTO {ns}.t VALUES (1, 'foo', 'x'), (2, 'bar', null)" for _ in range(5)),
    )


CASES: dict[str, SqlCase] = {
    "ancestors": SqlCase(
        (
            _T,
            _call("ancestors_of('{case}.t')"),
            _A,
            _B,
            "INSERT INTO {ns}.t VALUES (3, 'c')",
            _call("ancestors_of('{case}.t', {id:1}L)"),
            _call("rollback_to_snapshot('{case}.t', {id:1}L)"),
            _call("ancestors_of('{case}.t')"),
            _call("ancestors_of(snapshot_id => {id:2}L, table => '{case}.t')"),
            *_wrong(
                "ancestors_of", "ancestors_of('{case}.t', '1.1')", "ancestors_of('{case}.t', 1)"
            ),
        ),
        differs={1: "a table without snapshots has no ancestors, which is an error in Java"},
    ),
    "cherry_picks": SqlCase(
        (
            f"{_T} TBLPROPERTIES ('write.wap.enabled' = 'true')",
            _CURRENT,
            "CACHE TABLE {case}_view",
            "SET spark.wap.id=w1",
            _A,
            "RESET spark.wap.id",
            _SEEN,
            _call("cherrypick_snapshot('{case}.t', {id:0}L)"),
            _SEEN,
            "UNCACHE TABLE {case}_view",
            "SET spark.wap.id=w2",
            _B,
            "RESET spark.wap.id",
            _call("cherrypick_snapshot(snapshot_id => {id:1}L, table => '{case}.t')"),
            _ALL,
            _call("cherrypick_snapshot('{case}.t', -1L)"),
            *_wrong(
                "cherrypick_snapshot",
                "cherrypick_snapshot('n', table => 't', 1L)",
                "cherrypick_snapshot('t')",
                "cherrypick_snapshot('{case}.t', '2.2')",
            ),
        )
    ),
    "published_changes": SqlCase(
        (
            f"{_T} TBLPROPERTIES ('write.wap.enabled' = 'true')",
            _CURRENT,
            "CACHE TABLE {case}_view",
            "SET spark.wap.id=w1",
            _A,
            _B,
            "RESET spark.wap.id",
            _call("publish_changes('{case}.t', 'w1')"),
            "SET spark.wap.id=w2",
            "INSERT INTO {ns}.t VALUES (1, 'z')",
            "RESET spark.wap.id",
            _call("publish_changes(wap_id => 'w2', table => '{case}.t')"),
            _SEEN,
            "UNCACHE TABLE {case}_view",
            _call("publish_changes('{case}.t', 'not_valid')"),
            *_wrong("publish_changes", "publish_changes('t')", "publish_changes('', 'not_valid')"),
        )
    ),
    "fast_forwards_of_branches": SqlCase(
        (
            _T,
            _A,
            _call("fast_forward(table => '{case}.t', branch => 'main', to => 'missing')"),
            "ALTER TABLE {ns}.t CREATE BRANCH b1",
            "INSERT INTO {ns}.t.branch_b1 VALUES (3, 'c')",
            "ALTER TABLE {ns}.t CREATE BRANCH b2 AS OF VERSION {id:1}",
            "INSERT INTO {ns}.t.branch_b2 VALUES (4, 'd')",
            _call("fast_forward('{case}.t', 'b1', 'b2')"),
            _call("fast_forward(table => '{case}.t', branch => 'main', to => 'b1')"),
            _call("fast_forward('{case}.t', 'b3', 'b1')"),
            _ALL,
            _B,
            _call("fast_forward(table => '{case}.t', branch => 'main', to => 'b1')"),
            *_wrong(
                "fast_forward",
                "fast_forward(table => 't', 'main', to => 'b')",
                "fast_forward('t', 'main')",
                "fast_forward('', 'main', 'b')",
            ),
        )
    ),
    "rollbacks_to_snapshots": SqlCase(
        (
            _T,
            _A,
            _B,
            _CURRENT,
            "CACHE TABLE {case}_view",
            "INSERT INTO {ns}.t VALUES (1, 'z')",
            _SEEN,
            _call("rollback_to_snapshot(table => '{case}.t', snapshot_id => {id:1}L)"),
            _SEEN,
            "UNCACHE TABLE {case}_view",
            _call("rollback_to_snapshot('`{case}`.`t`', {id:0})"),
            "USE lake",
            "CALL SyStEm.sEt_cuRrEnT_sNaPsHot('{case}.t', {id:1}L)",
            "CALL SyStEm.rOLlBaCk_to_SnApShOt('{case}.t', {id:0}L)",
            "USE spark_catalog.default",
            _ALL,
            _call("rollback_to_snapshot('{case}.t', -1L)"),
            _call("rollback_to_snapshot('{case}.t', {id:2})"),
            *_wrong(
                "rollback_to_snapshot",
                "rollback_to_snapshot(namespace => 'n1', table => 't', 1L)",
                "rollback_to_snapshot('t')",
                "rollback_to_snapshot(1L)",
                "rollback_to_snapshot(snapshot_id => 1L)",
                "rollback_to_snapshot(table => 't')",
                "rollback_to_snapshot('t', '2.2')",
                "rollback_to_snapshot('', 1L)",
            ),
        )
    ),
    "rollbacks_to_timestamps": SqlCase(
        (
            _T,
            _A,
            _B,
            _call("rollback_to_timestamp('{case}.t', TIMESTAMP '{time:1}')"),
            _ALL,
            "USE lake",
            "CALL SyStEm.rOLlBaCk_to_TiMeStaMp('`{case}`.`t`', timestamp_millis({ms:1} - 1))",
            "USE spark_catalog.default",
            _ALL,
            _call(
                "rollback_to_timestamp(timestamp => TIMESTAMP '2020-01-01 00:00:00', "
                "table => '{case}.t')"
            ),
            *_wrong(
                "rollback_to_timestamp",
                "rollback_to_timestamp(namespace => 'n1', 't', TIMESTAMP '2020-01-01')",
                "rollback_to_timestamp('t')",
                "rollback_to_timestamp(timestamp => TIMESTAMP '2020-01-01')",
                "rollback_to_timestamp('n', 't', TIMESTAMP '2020-01-01', 1L)",
                "rollback_to_timestamp('{case}.t', 2.2)",
            ),
        )
    ),
    "current_snapshots": SqlCase(
        (
            f"{_T} TBLPROPERTIES ('write.wap.enabled' = 'true')",
            "SET spark.wap.id=w1",
            _A,
            "RESET spark.wap.id",
            _ALL,
            _call("set_current_snapshot(table => '{case}.t', snapshot_id => {id:0}L)"),
            _ALL,
            "ALTER TABLE {ns}.t CREATE TAG g",
            _B,
            _call("set_current_snapshot(table => '{case}.t', ref => 'g')"),
            _ALL,
            _call("set_current_snapshot('{case}.t', {id:1}L)"),
            _call("set_current_snapshot(table => '{case}.t', ref => 'missing')"),
            _call("set_current_snapshot('{case}.t', -1L)"),
            *_wrong(
                "set_current_snapshot",
                "set_current_snapshot(namespace => 'n1', table => 't', 1L)",
                "set_current_snapshot('{case}.t')",
                "set_current_snapshot(1L)",
                "set_current_snapshot(snapshot_id => 1L)",
                "set_current_snapshot('t', '2.2')",
                "set_current_snapshot('', 1L)",
                "set_current_snapshot(table => '{case}.t', snapshot_id => 1L, ref => 'g')",
            ),
        )
    ),
    "rewritten_manifests": SqlCase(
        (
            f"{_T} PARTITIONED BY (data)",
            _call("rewrite_manifests('{case}.t')"),
            _A,
            _call("rewrite_manifests('{case}.t')"),
            _B,
            "INSERT INTO {ns}.t VALUES (3, 'c'), (4, 'd')",
            _call("rewrite_manifests(usE_cAcHiNg => false, tAbLe => '{case}.t')"),
            "SELECT count(*) FROM {ns}.t.manifests",
            _ALL,
            _call("rewrite_manifests(table => '{case}.t', sort_by => array('missing'))"),
            _call("rewrite_manifests(table => '{case}.t', sort_by => array())"),
            _call("rewrite_manifests('{case}.t', 2.2)"),
            "INSERT INTO {ns}.t VALUES (5, 'e')",
            _call("rewrite_manifests(table => '{case}.t', sort_by => array('data'))"),
            *_wrong("rewrite_manifests"),
        )
    ),
    "rewritten_manifests_of_specs": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, dt string, hr string) USING iceberg PARTITIONED BY (dt) "
            "TBLPROPERTIES ('commit.manifest-merge.enabled' = 'false')",
            "INSERT INTO {ns}.t VALUES (1, '2024-01-01', '00')",
            "INSERT INTO {ns}.t VALUES (2, '2024-01-01', '00')",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD hr",
            "INSERT INTO {ns}.t VALUES (3, '2024-01-01', '00')",
            "SELECT partition_spec_id FROM {ns}.t.manifests",
            _call("rewrite_manifests('{case}.t')"),
            _call("rewrite_manifests(table => '{case}.t', spec_id => 0)"),
            "SELECT partition_spec_id FROM {ns}.t.manifests",
            _call("rewrite_manifests(table => '{case}.t', sort_by => array('hr', 'dt'))"),
            _ALL,
        )
    ),
    "rewritten_manifests_after_replacing": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, ts timestamp, day_of_ts date) USING iceberg "
            "PARTITIONED BY (day_of_ts)",
            "ALTER TABLE {ns}.t REPLACE PARTITION FIELD day_of_ts WITH days(ts)",
            "INSERT INTO {ns}.t VALUES (1, CAST('2022-01-01 10:00:00' AS timestamp), "
            "CAST('2022-01-01' AS date))",
            "INSERT INTO {ns}.t VALUES (2, CAST('2022-01-01 11:00:00' AS timestamp), "
            "CAST('2022-01-01' AS date))",
            "SELECT * FROM {ns}.t WHERE ts < current_timestamp()",
            _call("rewrite_manifests(table => '{case}.t')"),
            "SELECT * FROM {ns}.t WHERE ts < current_timestamp()",
        )
    ),
    "split_manifests": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, ts timestamp, d date) USING iceberg "
            "PARTITIONED BY (ts, d)",
            "INSERT INTO {ns}.t VALUES (1, TIMESTAMP '2022-01-01 10:00:00', DATE '2022-01-01'), "
            "(2, TIMESTAMP '2022-01-02 10:00:00', DATE '2022-01-02'), "
            "(3, TIMESTAMP '2022-01-03 10:00:00', DATE '2022-01-03')",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('commit.manifest.target-size-bytes' = '1')",
            _call("rewrite_manifests('{case}.t')"),
            _ALL,
        )
    ),
    "rewritten_positions": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, data string, items array<struct<value: bigint, "
            "count: int>>, props map<string, bigint>) USING iceberg TBLPROPERTIES "
            "('format-version' = '2', 'write.delete.mode' = 'merge-on-read', "
            "'write.delete.granularity' = 'partition')",
            "INSERT INTO {ns}.t SELECT id, cast(id AS string), array(named_struct('value', id, "
            "'count', 1)), map('x', id) FROM range(10)",
            "DELETE FROM {ns}.t WHERE id = 1",
            "DELETE FROM {ns}.t WHERE id = 2",
            _call("rewrite_position_delete_files(table => '{case}.t')"),
            _call(
                "rewrite_position_delete_files(table => '{case}.t', "
                "options => map('rewrite-all', 'true'))"
            ),
            "DELETE FROM {ns}.t WHERE id = 3",
            "DELETE FROM {ns}.t WHERE id = 4",
            "DELETE FROM {ns}.t WHERE id = 5",
            "DELETE FROM {ns}.t WHERE id = 6",
            _call("rewrite_position_delete_files(table => '{case}.t')"),
            "SELECT record_count FROM {ns}.t.delete_files",
            "SELECT id, items, props FROM {ns}.t",
            _call(
                "rewrite_position_delete_files(table => '{case}.t', options => map('foo', 'bar'))"
            ),
            _call(
                "rewrite_position_delete_files(table => '{case}.t', "
                "where => 'substr(data, 2) = \"fo\"')"
            ),
        )
    ),
    "rewritten_positions_of_partitions": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, data string) USING iceberg PARTITIONED BY (id) "
            "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read', "
            "'write.delete.granularity' = 'partition')",
            "INSERT INTO {ns}.t VALUES (1, 'a'), (1, 'b'), (1, 'c'), (2, 'd'), (2, 'e'), "
            "(2, 'f'), (3, 'g'), (3, 'h')",
            "DELETE FROM {ns}.t WHERE id = 1 AND data = 'a'",
            "DELETE FROM {ns}.t WHERE id = 1 AND data = 'b'",
            "DELETE FROM {ns}.t WHERE id = 2 AND data = 'd'",
            "DELETE FROM {ns}.t WHERE id = 2 AND data = 'e'",
            "DELETE FROM {ns}.t WHERE id = 3 AND data = 'g'",
            _call(
                "rewrite_position_delete_files(table => '{case}.t', where => 'id IN (1, 2) "
                "AND data = \"bar\"', options => map('rewrite-all', 'true'))"
            ),
            "SELECT partition, record_count FROM {ns}.t.delete_files",
            _ALL,
        )
    ),
    "expired_snapshots": SqlCase(
        (
            _T,
            _call("expire_snapshots('{case}.t')"),
            _A,
            _B,
            _call("expire_snapshots('{case}.t', TIMESTAMP '{time:1}')"),
            "SELECT count(*) FROM {ns}.t.snapshots",
            "INSERT OVERWRITE {ns}.t VALUES (3, 'c')",
            "INSERT INTO {ns}.t VALUES (4, 'd')",
            _call("expire_snapshots('{case}.t', TIMESTAMP '2100-01-01 00:00:00', 2)"),
            _call(
                "expire_snapshots(older_than => TIMESTAMP '2100-01-01 00:00:00', "
                "table => '{case}.t', max_concurrent_deletes => 4, stream_results => true)"
            ),
            "INSERT INTO {ns}.t VALUES (5, 'e')",
            _call("expire_snapshots(table => '{case}.t', snapshot_ids => ARRAY({id:0}))"),
            _call("expire_snapshots(table => '{case}.t', snapshot_ids => ARRAY({id:0}))"),
            "INSERT INTO {ns}.t VALUES (6, 'f')",
            "/* here */ -- and here\nCALL /* or here */ lake.system.expire_snapshots("
            "older_than => TIMESTAMP '2100-01-01 00:00:00', -- in between\ntable => '{case}.t')",
            _call("expire_snapshots(table => '{case}.t', max_concurrent_deletes => 0)"),
            _call("expire_snapshots(table => '{case}.t', max_concurrent_deletes => -1)"),
            _call("expire_snapshots('{case}.t', 2.2)"),
            _call("expire_snapshots('spark_catalog.default.t')"),
            *_wrong("expire_snapshots"),
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('gc.enabled' = 'false')",
            _call("expire_snapshots('{case}.t')"),
            _ALL,
        )
    ),
    "expired_delete_files": SqlCase(
        (
            f"{_T} TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')",
            "INSERT INTO {ns}.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
            "DELETE FROM {ns}.t WHERE id = 1",
            _call(
                "rewrite_data_files(table => '{case}.t', options => map("
                "'delete-file-threshold', '1', 'use-starting-sequence-number', 'false'))"
            ),
            _call(
                "expire_snapshots(older_than => TIMESTAMP '2100-01-01 00:00:00', "
                "table => '{case}.t')"
            ),
            _ALL,
            _B,
            _call(
                "expire_snapshots(older_than => TIMESTAMP '2100-01-01 00:00:00', "
                "table => '{case}.t')"
            ),
        ),
        differs=dict.fromkeys((3, 4, 7), "delete files that are not needed go with the rewrite"),
    ),
    "expired_metadata": SqlCase(
        (
            _T,
            _A,
            "ALTER TABLE {ns}.t ADD COLUMN extra int",
            "INSERT INTO {ns}.t VALUES (2, 'b', 1)",
            _call("compute_table_stats('{case}.t', {id:0})"),
            _call("compute_table_stats('{case}.t', {id:1})"),
            _call(
                "expire_snapshots(table => '{case}.t', older_than => TIMESTAMP "
                "'2100-01-01 00:00:00', clean_expired_metadata => true)"
            ),
            _ALL,
        )
    ),
    "orphans": SqlCase(
        (
            _T,
            _call("remove_orphan_files('{case}.t')"),
            _A,
            "CREATE TABLE {case}_p (id bigint) USING parquet LOCATION '{location}/data/p'",
            "INSERT INTO {case}_p VALUES (1)",
            _call(
                "remove_orphan_files(table => '{case}.t', older_than => "
                "TIMESTAMP '2020-01-01 00:00:00')"
            ),
            _call("remove_orphan_files(table => '{case}.t', max_concurrent_deletes => 0)"),
            _call("remove_orphan_files(table => '{case}.t', max_concurrent_deletes => -1)"),
            _call("remove_orphan_files('{case}.t', 2.2)"),
            "CREATE OR REPLACE TEMPORARY VIEW {case}_v1 AS SELECT 1 AS other",
            "CREATE OR REPLACE TEMPORARY VIEW {case}_v2 AS "
            "SELECT 1 AS file_path, now() AS last_modified",
            "CREATE OR REPLACE TEMPORARY VIEW {case}_v3 AS "
            "SELECT 'f' AS file_path, 'x' AS last_modified",
            _call("remove_orphan_files(table => '{case}.t', file_list_view => '{case}_v1')"),
            _call("remove_orphan_files(table => '{case}.t', file_list_view => '{case}_v2')"),
            _call("remove_orphan_files(table => '{case}.t', file_list_view => '{case}_v3')"),
            *_wrong("remove_orphan_files"),
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('gc.enabled' = 'false')",
            _call("remove_orphan_files('{case}.t')"),
            _ALL,
            "DROP TABLE {case}_p",
        )
    ),
    "changelogs_of_snapshots": _changelog(
        "`the id` int, `the.data` string",
        "INSERT INTO {ns}.t VALUES (1, 'a')",
        "INSERT INTO {ns}.t VALUES (2, 'b')",
        "SET spark.sql.sources.partitionOverwriteMode=dynamic",
        "INSERT OVERWRITE {ns}.t VALUES (-2, 'b')",
        "RESET spark.sql.sources.partitionOverwriteMode",
        _view("options => map('start-snapshot-id', '{id:0}', 'end-snapshot-id', '{id:2}')"),
        _CHANGES,
        _view(),
        _CHANGES,
        _view("options => map('start-snapshot-id', '{id:1}')"),
        _CHANGES,
        _view("options => map('end-snapshot-id', '{id:1}')"),
        _CHANGES,
        _view("options => map('start-timestamp', '{ms:0}', 'end-timestamp', '{ms:2}')"),
        _CHANGES,
        _view("options => map('start-timestamp', '0')"),
        _CHANGES,
        _view("options => map('end-timestamp', '{ms:1}')"),
        _CHANGES,
        _view("options => map('start-timestamp', '{ms:0}', 'end-snapshot-id', '{id:1}')"),
        _CHANGES,
        _view("options => map('start-snapshot-id', '{id:0}', 'end-timestamp', '{ms:1}')"),
        _CHANGES,
        _view(
            "options => map('start-timestamp', '4000000000000', 'end-timestamp', '4100000000000')"
        ),
        _CHANGES,
        _view("options => map('start-timestamp', '{ms:2}', 'end-timestamp', '{ms:0}')"),
        _call("create_changelog_view(table => '{case}.t')"),
        "SELECT count(*) FROM t_changes",
        clauses="PARTITIONED BY (`the.data`)",
        differs={26: "a start after the end is refused"},
    ),
    "changelogs_of_updates": _changelog(
        "id int NOT NULL, data string, age int",
        "INSERT INTO {ns}.t VALUES (1, 'a', 12), (2, 'b', 11), (2, 'e', 12)",
        "SET spark.sql.sources.partitionOverwriteMode=dynamic",
        "INSERT OVERWRITE {ns}.t VALUES (3, 'c', 13), (2, 'd', 11), (2, 'e', 12)",
        _view("identifier_columns => array('id', 'age')"),
        _CHANGES,
        "SELECT * FROM {case}_changes WHERE id != 3",
        _view(),
        _CHANGES,
        _view("compute_updates => true"),
        "INSERT OVERWRITE {ns}.t VALUES (3, 'c', 15), (2, 'e', 12)",
        "RESET spark.sql.sources.partitionOverwriteMode",
        _view("net_changes => true"),
        _CHANGES,
        _view("options => map('start-snapshot-id', '{id:0}'), net_changes => true"),
        _CHANGES,
        _view("identifier_columns => array('id'), net_changes => true"),
        _view("identifier_columns => array('missing')"),
        clauses="PARTITIONED BY (id)",
    ),
    "changelogs_by_identifier": _changelog(
        "id int NOT NULL, data string",
        "ALTER TABLE {ns}.t SET IDENTIFIER FIELDS id",
        "INSERT INTO {ns}.t VALUES (2, 'b')",
        "INSERT OVERWRITE {ns}.t VALUES (3, 'c'), (2, 'd')",
        _view("compute_updates => true"),
        _CHANGES,
    ),
    "changelogs_of_maps": _changelog(
        "id int NOT NULL, data map<string, string>, age int",
        "INSERT INTO {ns}.t VALUES (1, map('a', 'b'), 3)",
        _view(),
        differs={2: "rows with maps are compared here"},
    ),
    "computed_statistics": SqlCase(
        (
            f"{_T} PARTITIONED BY (data)",
            _call("compute_table_stats('{case}.t')"),
            _call("compute_partition_stats('{case}.t')"),
            "INSERT INTO {ns}.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
            "ALTER TABLE {ns}.t CREATE BRANCH b1",
            "INSERT INTO {ns}.t VALUES (5, 'e'), (6, 'f')",
            _call("compute_table_stats(table => '{case}.t', columns => array('id'))"),
            _call("compute_table_stats('{case}.t', {id:0}L)"),
            _call("compute_partition_stats(table => '{case}.t', snapshot_id => {id:0})"),
            _call("compute_partition_stats('{case}.t')"),
            _call("compute_table_stats(table => '{case}.t', columns => array('id1'))"),
            _call("compute_table_stats(table => '{case}.t', snapshot_id => 1234)"),
            _call("compute_partition_stats(table => '{case}.t', snapshot_id => 42)"),
            _call("compute_table_stats(table => '{case}.missing')"),
            _call("compute_partition_stats(table => '{case}.missing')"),
        )
    ),
    "rewritten_paths": SqlCase(
        (
            _T,
            _A,
            _B,
            _call("rewrite_table_path('{case}.t', '{location}', '{dir}/target')"),
            _call(
                "rewrite_table_path(table => '{case}.t', target_prefix => '{dir}/target', "
                "source_prefix => '{location}', staging_location => '{dir}/staging', "
                "create_file_list => false)"
            ),
            _call("rewrite_table_path('{case}.t')"),
            _call("rewrite_table_path('{case}.t', '{dir}/target')"),
            _call("rewrite_table_path('{case}.missing', '{dir}', '{dir}')"),
            _call(
                "rewrite_table_path(table => '{case}.t', source_prefix => '{location}', "
                "target_prefix => '{dir}/target', start_version => 'v20.metadata.json')"
            ),
            _call(
                "rewrite_table_path(table => '{case}.t', source_prefix => '{location}', "
                "target_prefix => '{dir}/target', end_version => 'v11.metadata.json')"
            ),
        )
    ),
    "snapshots_of_others": SqlCase(
        (
            "CREATE TABLE {case}_source (id bigint NOT NULL, data string) USING parquet "
            "LOCATION '{dir}/source'",
            "INSERT INTO {case}_source VALUES (1, 'a')",
            _call("snapshot('spark_catalog.default.{case}_source', 'lake.{case}.t')"),
            _ALL,
            _B,
            "SELECT * FROM {case}_source",
            _call(
                "snapshot(source_table => 'spark_catalog.default.{case}_source', table => "
                "'lake.{case}.u', properties => map('foo', 'bar', 'gc.enabled', 'true', "
                "'snapshot', 'false'), parallelism => 2)"
            ),
            "SELECT * FROM {ns}.u",
            "DROP TABLE {ns}.u",
            _call("snapshot('foo')"),
            _call("snapshot('n', 't', map('foo', 'bar'))"),
            _call("snapshot('', 'dest')"),
            _call("snapshot('src', '')"),
            _call(
                "snapshot(source_table => 'spark_catalog.default.{case}_source', "
                "table => 'lake.{case}.v', parallelism => -1)"
            ),
            "DROP TABLE {case}_source",
        )
    ),
    "snapshots_of_partitions": SqlCase(
        (
            "CREATE TABLE {case}_source (data string, id bigint) USING parquet "
            "PARTITIONED BY (id) LOCATION '{dir}/source'",
            "INSERT INTO {case}_source VALUES ('a', 1), ('b', 2)",
            _call("snapshot('spark_catalog.default.{case}_source', 'lake.{case}.t')"),
            "SELECT partition, record_count FROM {ns}.t.files",
            _call(
                "snapshot(source_table => 'spark_catalog.default.{case}_source', table => "
                "'lake.{case}.u', properties => map('format-version', '1'), parallelism => 2)"
            ),
            "SELECT * FROM {ns}.u",
            "SHOW TBLPROPERTIES {ns}.u ('format-version')",
            "DROP TABLE {case}_source",
        ),
        ("t", "u"),
    ),
    "added_files": _added(
        "",
        "",
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`')"),
        _ALL,
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`')"),
        _call(
            "add_files(table => '{case}.t', source_table => '`parquet`.`{dir}/source`', "
            "check_duplicate_files => false, parallelism => 2)"
        ),
        "SELECT id, count(*) FROM {ns}.t GROUP BY id",
        "DELETE FROM {ns}.t",
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`')"),
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`', map('id', 1))"),
        _call(
            "add_files(table => '{case}.t', source_table => '`parquet`.`{dir}/source`', "
            "parallelism => -1)"
        ),
        _ALL,
    ),
    "added_partitions": _added(
        "PARTITIONED BY (id)",
        "PARTITIONED BY (id)",
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`', map('id', 1))"),
        _ALL,
        _call(
            "add_files(table => '{case}.t', source_table => '`parquet`.`{dir}/source`', "
            "partition_filter => map('id', 2))"
        ),
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`', map('id', 2))"),
        _call(
            "add_files(table => '{case}.t', source_table => '`parquet`.`{dir}/source`', "
            "partition_filter => map('id', 1), check_duplicate_files => false)"
        ),
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`', map('x', '1', 'y', '2'))"),
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`', map('id', '0', 'dept', '1'))"),
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`', map('dept', '2'))"),
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`', map('id', 999))"),
        "DELETE FROM {ns}.t WHERE id = 1",
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`', map('id', 1))"),
        _ALL,
        "SELECT partition, record_count FROM {ns}.t.files",
    ),
    "added_null_partitions": _added(
        "PARTITIONED BY (dept, subdept)",
        "PARTITIONED BY (dept, subdept)",
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`', map('dept', 'facilities'))"),
        _ALL,
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`', map('dept', 'hr'))"),
        _ALL,
        "SELECT * FROM {ns}.t WHERE subdept IS NULL",
        "SELECT partition, record_count FROM {ns}.t.partitions",
    ),
    "added_after_evolution": _added(
        "PARTITIONED BY (id)",
        "PARTITIONED BY (id)",
        "ALTER TABLE {ns}.t ADD PARTITION FIELD subdept",
        _call("add_files('{case}.t', '`parquet`.`{dir}/source`')"),
        "SELECT partition, record_count FROM {ns}.t.files",
        "CREATE TABLE {ns}.u (id bigint, name string, dept string, subdept string) USING iceberg "
        "PARTITIONED BY (dept)",
        _call("add_files('{case}.u', '`parquet`.`{dir}/source`')"),
        differs={5: "files go to the current partition spec if their rows tell the partition"},
    ),
    "added_of_fewer_columns": SqlCase(
        (
            "CREATE TABLE {case}_source (id int, naMe string, extra date) USING orc "
            "LOCATION '{dir}/source'",
            "INSERT INTO {case}_source VALUES (1, 'n', date '2021-01-01'), (2, null, null)",
            "CREATE TABLE {ns}.t (id int, naMe string, missing int) USING iceberg",
            _call("add_files('{case}.t', '`orc`.`{dir}/source`')"),
            _ALL,
            "SELECT id FROM {ns}.t WHERE `naMe` = 'n'",
            "CREATE TABLE {case}_empty (id int, naMe string) USING parquet LOCATION '{dir}/empty'",
            _call("add_files('{case}.t', '`parquet`.`{dir}/nothing`')"),
            "DROP TABLE {case}_source",
            "DROP TABLE {case}_empty",
        )
    ),
    "rewritten_files": SqlCase(
        (
            *_small_files(),
            _call(
                "rewrite_data_files(table => '{case}.t', options => map('min-input-files', '12'))"
            ),
            _call("rewrite_data_files(table => '{case}.t', where => '0=1')"),
            _call("rewrite_data_files(table => '{case}.t', where => 'c1 > 3')"),
            _call("rewrite_data_files(table => '{case}.t', where => 'c1 in (3, 4, 5)')"),
            _call("rewrite_data_files(table => '{case}.t', where => 'c2 like \"car%\"')"),
            _call("rewrite_data_files(table => '{case}.t', where => 'c1 = 3 or c1 = 5')"),
            _call("rewrite_data_files(table => '{case}.t', where => 'C1 = 1 and c2 is not null')"),
            _ALL,
            _call("rewrite_data_files('{case}.t')"),
            *_small_files()[1:],
            _call("rewrite_data_files(table => '{case}.t', where => '1=1')"),
        )
    ),
    "rewritten_files_of_nothing": SqlCase(
        (
            "CREATE TABLE {ns}.t (c1 int, c2 string, c3 string) USING iceberg",
            _call("rewrite_data_files('{case}.t')"),
            _call("rewrite_data_files(table => '{case}.t', strategy => 'temp')"),
            _call(
                "rewrite_data_files(table => '{case}.t', strategy => 'binpack', "
                "sort_order => 'c1 ASC NULLS FIRST')"
            ),
            _call("rewrite_data_files(table => '{case}.t', strategy => 'sort')"),
            _call(
                "rewrite_data_files(table => '{case}.t', strategy => 'sort', "
                "sort_order => 'c1 ASC none')"
            ),
            _call(
                "rewrite_data_files(table => '{case}.t', strategy => 'sort', "
                "sort_order => 'c1 none NULLS FIRST')"
            ),
            _call(
                "rewrite_data_files(table => '{case}.t', strategy => 'sort', "
                "sort_order => 'col1 DESC NULLS FIRST')"
            ),
            _call("rewrite_data_files(table => '{case}.t', where => 'col1 = 3')"),
            _call(
                "rewrite_data_files(table => '{case}.t', strategy => 'sort', "
                "sort_order => 'zorder(col1)')"
            ),
            _call(
                "rewrite_data_files(table => '{case}.t', strategy => 'sort', "
                "sort_order => 'c1,zorder(c2,c3)')"
            ),
            _call("rewrite_data_files(table => '{case}.t', where => 'substr(c2, 2) = \"fo\"')"),
            _call(
                "rewrite_data_files(table => '{case}.t', "
                'where => \'substr(encode(c2, "utf-8"), 2) = "fo"\')'
            ),
            _call("rewrite_data_files(table => '{case}.t', options => map('foo', 'bar'))"),
            _call("rewrite_data_files(table => '{case}.t', branch => null)"),
            _call("rewrite_data_files(table => '{case}.t', branch => 'missing')"),
            *_wrong("rewrite_data_files"),
        ),
        differs=dict.fromkeys((13, 15), "options and branches are checked for empty tables, too"),
    ),
    "sorted_files": SqlCase(
        (
            *_small_files("TBLPROPERTIES ('format-version' = '3')"),
            "SELECT c1, _row_id, _last_updated_sequence_number AS n FROM {ns}.t",
            _call(
                "rewrite_data_files(table => '{case}.t', strategy => 'sort', "
                "sort_order => 'c1 DESC NULLS LAST')"
            ),
            "SELECT c1, _row_id, _last_updated_sequence_number AS n FROM {ns}.t",
            "SELECT sort_order_id, record_count FROM {ns}.t.files",
            "ALTER TABLE {ns}.t WRITE ORDERED BY c2",
            *_small_files()[1:],
            _call(
                "rewrite_data_files(table => '{case}.t', strategy => 'sort', "
                "options => map('min-input-files', '2', 'shuffle-partitions-per-file', '2'))"
            ),
            "SELECT sort_order_id, record_count FROM {ns}.t.files",
            _ALL,
        )
    ),
    "z_ordered_files": SqlCase(
        (
            *_small_files(columns="c1 int, c2 string, c3 binary")[:1],
            *("INSERT INTO {ns}.t VALUES (1, 'foo', null), (2, 'bar', X'01')" for _ in range(5)),
            _call(
                "rewrite_data_files(table => '{case}.t', strategy => 'sort', "
                "sort_order => 'zorder(c2, c3)')"
            ),
            "SELECT record_count FROM {ns}.t.files",
            "SELECT c1, c2, c3 FROM {ns}.t",
        )
    ),
    "rewritten_partitions": SqlCase(
        (
            *_small_files("PARTITIONED BY (c2)"),
            _call("rewrite_data_files(table => '{case}.t', where => 'c2 = \"bar\"')"),
            "SELECT partition, file_count FROM {ns}.t.partitions",
            _call("rewrite_data_files(table => '{case}.t', where => 'c2 in (\"foo\")')"),
            "SELECT partition, file_count FROM {ns}.t.partitions",
            _call("rewrite_data_files(table => '{case}.t')"),
            _ALL,
        )
    ),
    "rewritten_by_functions": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, data string, ts timestamp) USING iceberg "
            "PARTITIONED BY (bucket(2, data))",
            *(
                "INSERT INTO {ns}.t VALUES (1, 'foo', TIMESTAMP '2023-01-02 00:00:00'), "
                "(2, 'bar', null), (3, 'car', TIMESTAMP '2020-01-02 00:00:00')"
                for _ in range(5)
            ),
            *(
                _call(f"rewrite_data_files(table => '{{case}}.t', where => 'lake.system.{text}')")
                for text in (
                    "bucket(2, data) = 0",
                    "bucket(2, data) >= 0",
                    "truncate(4, id) >= 1",
                    "years(ts) >= 1",
                    "months(ts) >= 1",
                    'days(ts) >= date("2023-01-01")',
                    "hours(ts) >= 1",
                )
            ),
            "SELECT partition, file_count FROM {ns}.t.partitions",
            _ALL,
        ),
        (),
        {8: "whether ids truncated to 4 are at least 1, no file of these can tell"},
    ),
    "rewritten_branches": SqlCase(
        (
            *_small_files("PARTITIONED BY (c2)"),
            "ALTER TABLE {ns}.t CREATE BRANCH b",
            "INSERT INTO {ns}.t.branch_b VALUES (3, 'bar', 'z')",
            _call(
                "rewrite_data_files(table => '{case}.t', branch => 'b', where => 'c2 = \"bar\"')"
            ),
            "SELECT * FROM {ns}.t.branch_b",
            _call("rewrite_data_files(table => '{case}.t', branch => 'b')"),
            "SELECT count(*) FROM {ns}.t.files",
            _ALL,
        )
    ),
    "rewritten_special_names": SqlCase(
        (
            "CREATE TABLE {ns}.`table:with.special:chars` (c1 int, c2 string) USING iceberg",
            "INSERT INTO {ns}.`table:with.special:chars` VALUES (1, 'a')",
            "INSERT INTO {ns}.`table:with.special:chars` VALUES (2, 'b')",
            _call(
                "rewrite_data_files(table => '{case}.`table:with.special:chars`', "
                "where => 'c2 is not null', options => map('min-input-files', '2'))"
            ),
            _call(
                "rewrite_data_files(table => '{ns}.`table:with.special:chars`', "
                "strategy => 'sort', sort_order => 'c1', "
                "options => map('rewrite-all', 'true'))"
            ),
            _call(
                "rewrite_data_files(table => '{ns}.`table:with.special:chars`', "
                "strategy => 'sort', sort_order => 'zorder(c1, c2)', "
                "options => map('rewrite-all', 'true'))"
            ),
            "SELECT * FROM {ns}.`table:with.special:chars`",
            "DROP TABLE {ns}.`table:with.special:chars`",
        ),
        (),
    ),
}
