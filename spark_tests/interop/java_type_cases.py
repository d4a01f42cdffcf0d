"""Scripts of SQL on functions, types and joins, for the statements of Java Iceberg's own tests."""

from __future__ import annotations

from collections.abc import Iterable

from sql_cases import SqlCase

_ALL = "SELECT * FROM {ns}.t"
_V3 = "'format-version' = '3'"
_WIDTHS = ("2", "10", "300Y", "10S")
_NUMBERS = (0, 1, 5, 9, 10, 11, -1, -5, -10, -11)
_TIMES = ("2017-12-01 10:12:55.038194", "1970-01-01 00:00:01.000001", "1969-12-31 23:59:58.999999")
_DATES = ("date('2017-12-01')", "date('1970-01-01')", "date('1969-12-31')", "cast(null AS date)")
_ZONED = (*(f"TIMESTAMP '{time} UTC'" for time in _TIMES), "cast(null AS timestamp)")
_NTZ = (*(f"TIMESTAMP_NTZ '{time}'" for time in _TIMES), "cast(null AS timestamp_ntz)")
_VARIANT = 'parse_json(\'{"a": %d, "b": "%s"}\')'


def _select(calls: Iterable[str]) -> str:
    return "SELECT " + ", ".join(f"lake.system.{call} AS c{at}" for at, call in enumerate(calls))


def _wrong(*calls: str) -> tuple[str, ...]:
    return tuple(f"SELECT lake.system.{call} AS c" for call in calls)


def _of_times(function: str, *values: str) -> tuple[str, ...]:
    return (
        _select(f"{function}({value})" for value in values),
        *_wrong(
            f"{function}()",
            f"{function}(date('1969-12-31'), date('1969-12-31'))",
            f"{function}(1)",
            f"{function}(1L)",
        ),
    )


def _joined(column: str, transform: str, values: tuple[str, ...]) -> SqlCase:
    """Two tables that are partitioned alike, joined by the column and by more."""
    rows = ", ".join(f"({at}, {value}, {at * 10})" for at, value in enumerate(values))
    tables = [
        statement
        for name in ("t", "u")
        for statement in (
            f"CREATE TABLE {{ns}}.{name} (id bigint, k {column}, salary int) USING iceberg "
            f"PARTITIONED BY ({transform})",
            f"INSERT INTO {{ns}}.{name} VALUES {rows}",
        )
    ]
    return SqlCase(
        (
            "SET spark.sql.sources.v2.bucketing.enabled=true",
            *tables,
            "SELECT t.id, t.salary FROM {ns}.t JOIN {ns}.u ON t.k = u.k",
            "SELECT t.id, u.id FROM {ns}.t LEFT JOIN {ns}.u ON t.k = u.k AND t.id = u.id + 1",
            "RESET spark.sql.sources.v2.bucketing.enabled",
        ),
        ("t", "u"),
    )


def _joined_times(transform: str) -> SqlCase:
    return _joined(
        "timestamp",
        f"{transform}(k), bucket(4, k)",
        ("TIMESTAMP '2021-06-30 01:00:00'", "TIMESTAMP '2022-07-30 02:00:00'", "null"),
    )


CASES: dict[str, SqlCase] = {
    "buckets_of_types": SqlCase(
        (
            _select(
                (
                    "bucket(10, 8Y)",
                    "bucket(10, 8S)",
                    "bucket(100, 34)",
                    "bucket(100, -34L)",
                    "bucket(1, cast(null AS int))",
                    "bucket(100, date('1970-02-04'))",
                    "bucket(1, cast(null AS date))",
                    "bucket(64, cast('12.34' AS decimal(9, 2)))",
                    "bucket(128, cast('0.05' AS decimal(9, 2)))",
                    "bucket(16, cast('12.999' AS decimal(9, 3)))",
                    "bucket(100, TIMESTAMP '1997-01-31 09:26:56 UTC')",
                    "bucket(100, TIMESTAMP_NTZ '1997-01-31 09:26:56')",
                    "bucket(100, 'abcdefg')",
                    "bucket(128, 'abcde')",
                    "bucket(128, X'0102030405060708')",
                    "bucket(64Y, cast(null AS binary))",
                    "bucket(5S, 6L)",
                    "bucket(5, cast('varchar' AS varchar(9)))",
                )
            ),
            *_wrong(
                "bucket()",
                "bucket(1)",
                "bucket(1, 1, 1)",
                "bucket('10', 12)",
                "bucket(12L, 10)",
                "bucket(interval '100-00' year to month, 10)",
                "bucket(10, cast(12.3456 AS float))",
                "bucket(10, cast(12.3456 AS double))",
                "bucket(10, true)",
                "bucket(10, map(1, 1))",
                "bucket(10, array(1L))",
                "bucket(10, interval '100-00' year to month)",
            ),
        ),
        (),
    ),
    "truncations_of_types": SqlCase(
        (
            *(
                _select(f"truncate(10, {number}{suffix})" for number in _NUMBERS)
                for suffix in ("Y", "S", "", "L")
            ),
            _select(
                (
                    "truncate(2, cast(null AS tinyint))",
                    "truncate(300, 1)",
                    "truncate(5Y, 7)",
                    "truncate(5S, 7L)",
                    "truncate(10, cast(12.34 AS decimal(9, 2)))",
                    "truncate(3, cast(0.05 AS decimal(5, 2)))",
                    "truncate(10, cast(-0.05 AS decimal(9, 2)))",
                    "truncate(10, 12345.3482)",
                    "truncate(2, cast(null AS decimal))",
                    "truncate(5, 'abcdefg')",
                    "truncate(5, 'abc')",
                    "truncate(5, 'abcde')",
                    "truncate(2, cast(null AS string))",
                    "truncate(1, '测试raul试测')",
                    "truncate(4, '测试raul试测')",
                    "truncate(4, cast('测试raul试测' AS varchar(8)))",
                    "truncate(10, X'0102030405060708090a0b0c')",
                    "truncate(3, cast(null AS binary))",
                )
            ),
            "SELECT id, lake.system.truncate(4, id) AS t FROM range(5)",
            *_wrong(
                "truncate()",
                "truncate(1)",
                "truncate(1, 1L, 1)",
                "truncate(5L, 1)",
                "truncate('5', 1)",
                "truncate(1.5, 1)",
                "truncate(10, cast(12.3456 AS float))",
                "truncate(10, cast(12.3456 AS double))",
                "truncate(10, true)",
                "truncate(10, map(1, 1))",
                "truncate(10, array(1L))",
                "truncate(10, interval '100-00' year to month)",
            ),
        ),
        (),
    ),
    "truncated_columns_by_width": SqlCase(
        ("SELECT lake.system.truncate(cast(id + 1 AS int), id * 7) AS t FROM range(5)",), ()
    ),
    "times_in_parts": SqlCase(
        (
            *_of_times("years", *_DATES, *_ZONED, *_NTZ),
            *_of_times("months", *_DATES, *_ZONED, *_NTZ),
            *_of_times("days", *_DATES, *_ZONED, *_NTZ),
            *_of_times("hours", *_ZONED, *_NTZ),
        ),
        (),
    ),
    "versions_of_iceberg": SqlCase(
        (
            "USE lake",
            "SELECT length(system.iceberg_version()) > 0 AS known",
            "SELECT length(iceberg_version()) > 0 AS known",
            "USE spark_catalog.default",
            "SELECT length(lake.system.iceberg_version()) > 0 AS known",
            "SELECT lake.other.iceberg_version() AS v",
        ),
        (),
    ),
    "variants_read": SqlCase(
        (
            f"CREATE TABLE {{ns}}.t (id bigint, v1 variant, v2 variant) USING iceberg "
            f"TBLPROPERTIES ({_V3}, 'write.delete.mode' = 'merge-on-read')",
            f"INSERT INTO {{ns}}.t SELECT 1, {_VARIANT % (5, 'A')}, {_VARIANT % (15, 'X')}",
            f"INSERT INTO {{ns}}.t SELECT 2, {_VARIANT % (10, 'B')}, {_VARIANT % (20, 'Y')}",
            "INSERT INTO {ns}.t SELECT 3, NULL, NULL",
            "SELECT id, to_json(v1) FROM {ns}.t",
            "SELECT id FROM {ns}.t",
            'SELECT id, to_json(v2) FROM {ns}.t WHERE to_json(v1) = \'{"a":5,"b":"A"}\'',
            "SELECT id FROM {ns}.t WHERE v1 IS NULL",
            "DELETE FROM {ns}.t WHERE id = 1",
            "SELECT id, to_json(v1), to_json(v2) FROM {ns}.t",
            "MERGE INTO {ns}.t t USING (SELECT 2 AS id, parse_json('{\"n\": 31}') AS v) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v1 = s.v "
            "WHEN NOT MATCHED THEN INSERT (id, v1) VALUES (s.id, s.v)",
            "SELECT id, to_json(v1), to_json(v2) FROM {ns}.t",
        ),
        (),
    ),
    "variants_nested": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, s struct<v: variant>, a array<variant>, "
            f"m map<string, variant>) USING iceberg TBLPROPERTIES ({_V3})",
            f"INSERT INTO {{ns}}.t SELECT 1, named_struct('v', {_VARIANT % (1, 'p')}), "
            f"array({_VARIANT % (2, 'q')}, {_VARIANT % (3, 'r')}), map('k', {_VARIANT % (4, 's')})",
            "SELECT id, to_json(s.v), to_json(a[0]), to_json(a[1]), to_json(m['k']) FROM {ns}.t",
            "SELECT variant_get(s.v, '$.a', 'int') AS a FROM {ns}.t",
        ),
        (),
    ),
    "variants_shredded": SqlCase(
        (
            f"CREATE TABLE {{ns}}.t (id bigint, v variant) USING iceberg TBLPROPERTIES ({_V3}, "
            "'write.parquet.shred-variants' = 'true')",
            f"INSERT INTO {{ns}}.t SELECT 1, {_VARIANT % (5, 'A')}",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('write.parquet.shred-variants' = 'false', "
            "'write.metadata.metrics.default' = 'none')",
            f"INSERT INTO {{ns}}.t SELECT 2, {_VARIANT % (10, 'B')}",
            "SELECT id FROM {ns}.t WHERE variant_get(v, '$.a', 'int') > 4",
            "SELECT id, to_json(v) FROM {ns}.t",
        ),
        (),
    ),
    "shapes": SqlCase(
        (
            "SET spark.sql.geospatial.enabled=true",
            "CREATE TABLE {ns}.t (id bigint, geom geometry(4326), geog geography(4326)) "
            f"USING iceberg TBLPROPERTIES ({_V3})",
            "INSERT INTO {ns}.t VALUES (1, st_setsrid(st_geomfromwkb("
            "X'0101000000000000000000F03F0000000000000040'), 4326), st_setsrid(st_geogfromwkb("
            "X'0101000000000000000000F03F0000000000000040'), 4326)), (2, NULL, NULL)",
            "SELECT id, hex(st_asbinary(geom)) AS geom, hex(st_asbinary(geog)) AS geog FROM {ns}.t",
            "RESET spark.sql.geospatial.enabled",
        ),
        (),
    ),
    "joins_by_buckets_of_numbers": _joined(
        "bigint", "bucket(4, k), truncate(2, k)", ("1", "5", "null")
    ),
    "joins_by_buckets_of_integers": _joined("int", "bucket(4, k)", ("1", "-5", "null")),
    "joins_by_buckets_of_decimals": _joined(
        "decimal(20, 2)", "bucket(4, k)", ("20.00", "40.00", "60.00")
    ),
    "joins_by_buckets_of_binaries": _joined("binary", "bucket(4, k)", ("X'01'", "X'0203'")),
    "joins_by_buckets_of_dates": _joined(
        "date", "bucket(4, k), years(k)", ("date '2021-06-30'", "date '2022-01-01'")
    ),
    "joins_by_days_of_local_times": _joined(
        "timestamp_ntz",
        "days(k), bucket(4, k)",
        ("TIMESTAMP_NTZ '2021-06-30 01:00:00'", "TIMESTAMP_NTZ '2022-07-30 02:00:00'"),
    ),
    "joins_by_years": _joined_times("years"),
    "joins_by_months": _joined_times("months"),
    "joins_by_hours": _joined_times("hours"),
    "joins_across_specs": SqlCase(
        (
            "SET spark.sql.sources.v2.bucketing.enabled=true",
            "CREATE TABLE {ns}.t (id bigint, k int, dep string, ts timestamp) USING iceberg "
            "PARTITIONED BY (bucket(8, id), hours(ts))",
            "CREATE TABLE {ns}.u (id bigint, k int, dep string, ts timestamp) USING iceberg "
            "PARTITIONED BY (bucket(4, id), days(ts))",
            "CREATE TABLE {ns}.e (id bigint, k int) USING iceberg PARTITIONED BY (bucket(4, id))",
            "INSERT INTO {ns}.t SELECT id, cast(id % 3 AS int), 'software', "
            "timestamp_seconds(id * 5000) FROM range(20)",
            "INSERT INTO {ns}.u SELECT id, cast(id % 4 AS int), 'hr', "
            "timestamp_seconds(id * 5000) FROM range(10, 30)",
            "ALTER TABLE {ns}.u ADD PARTITION FIELD dep",
            "INSERT INTO {ns}.u SELECT id, 7, 'it', timestamp_seconds(id * 5000) FROM range(2)",
            "SELECT t.id, t.k, u.k FROM {ns}.t JOIN {ns}.u ON t.id = u.id",
            "SELECT count(*) FROM {ns}.t JOIN {ns}.u ON t.id = u.id AND t.ts = u.ts",
            "SELECT t.id FROM {ns}.t JOIN {ns}.e ON t.id = e.id",
            "SELECT count(*) FROM {ns}.t LEFT JOIN {ns}.e ON t.id = e.id",
            "SELECT count(DISTINCT id), count(DISTINCT k) FROM {ns}.u",
            "SELECT id, count(DISTINCT k), max(k) FROM {ns}.u GROUP BY id",
            "RESET spark.sql.sources.v2.bucketing.enabled",
        ),
        ("t", "u", "e"),
    ),
    "rewritten_positions_of_types": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, d date, b boolean, ts timestamp, ntz timestamp_ntz, "
            "n decimal(18, 10), bin binary, c char(10), v varchar(10), i int, `x.y` string, "
            "e string) USING iceberg PARTITIONED BY (d, b, ts, ntz, n, bin, c, v, i, `x.y`, "
            "truncate(1, e)) TBLPROPERTIES ('format-version' = '2', "
            "'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition')",
            "INSERT INTO {ns}.t SELECT id, date '2021-05-05', true, "
            "TIMESTAMP '2021-05-05 01:00:00', TIMESTAMP_NTZ '2021-05-05 01:00:00', 1.5, X'0102', "
            "'c', 'v', 7, 'xy', null FROM range(6)",
            "DELETE FROM {ns}.t WHERE id = 1",
            "DELETE FROM {ns}.t WHERE id = 2",
            "CALL lake.system.rewrite_position_delete_files(table => '{case}.t', "
            "options => map('rewrite-all', 'true'))",
            "SELECT record_count, partition FROM {ns}.t.delete_files",
            "SELECT id FROM {ns}.t",
        ),
        (),
        dict.fromkeys((4, 5, 6), "Java takes the deletes away: rows that were deleted are back"),
    ),
}
