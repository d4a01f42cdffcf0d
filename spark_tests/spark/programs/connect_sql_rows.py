"""What statements that change rows leave behind, through Spark Connect."""

from __future__ import annotations

import json
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import SparkSession, functions as f

from icebergds import load_catalog, register
from icebergds.errors import IcebergError

_STATEMENTS = {
    "insert": "INSERT INTO rows.db.t VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y')",
    "overwrite": "INSERT OVERWRITE rows.db.t PARTITION (p = 'y') SELECT id + 1, DEFAULT "
    "FROM rows.db.t WHERE p = 'y'",
    "delete": "WITH c AS (SELECT max(id) AS m FROM rows.db.t) "
    "DELETE FROM rows.db.t WHERE id IN (SELECT m FROM c)",
    "update": "UPDATE rows.db.t AS x SET name = "
    "(SELECT max(u.p) FROM rows.db.t u WHERE u.id = x.id) "
    "WHERE EXISTS (SELECT 1 FROM rows.db.t WHERE t.id = x.id AND rows.db.t.id > 1)",
    "merge": "MERGE INTO rows.db.t USING (SELECT id + 1 AS id FROM rows.db.t) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET name = 'matched' WHEN NOT MATCHED THEN INSERT (id) VALUES (id)",
    "replace using": "INSERT INTO rows.db.t REPLACE USING (p) VALUES (4, 'd', 'x'), (5, 'e', 'z')",
    "replace on": "INSERT INTO rows.db.t AS x WITH ('isolation-level' = 'none') "
    "REPLACE ON x.id = s.id + 1 AND s.id > 3 (SELECT 4 AS id, 'f', 'x') AS s",
    "malformed": "DELETE FROM rows.db.t WHERE id = 1 ORDER BY id",
    "too few": "INSERT INTO rows.db.t SELECT 1",
    "wrong key": "MERGE INTO rows.db.t USING (SELECT 1 AS id) s ON t.key = s.id "
    "WHEN MATCHED THEN DELETE",
}
_TRUNCATE = "TRUNCATE TABLE rows.db.t"


def _merge(spark: SparkSession) -> None:
    source = spark.range(3, 6).alias("s").where("id > 2")
    merged = source.mergeInto("rows.db.t", f.expr("t.id = s.id"))
    merged = merged.whenMatched(f.col("t.p") == "x").update({"t.name": f.concat("t.name", "s.id")})
    merged = merged.whenMatched().delete().whenNotMatched().insert({"id": f.col("s.id")})
    merged.merge()


def see(spark: SparkSession, directory: str) -> dict[str, Any]:
    """The rows after each statement, or the kind of its error; and the views that are left."""
    spark.conf.set("spark.icebergpy.catalog.rows.warehouse", directory)
    register(spark, sql=True)
    catalog = load_catalog("rows", warehouse=directory)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint, name string, p string", partition_spec="p")
    seen: dict[str, Any] = {}
    for name, statement in {**_STATEMENTS, "merge into": "", "truncate": _TRUNCATE}.items():
        try:
            if statement:
                spark.sql(statement)
            else:
                _merge(spark)
            rows = table.refresh().scan().to_arrow().to_pylist()
            seen[name] = sorted(([*row.values()] for row in rows), key=json.dumps)
        except (IcebergError, ParseException) as error:
            seen[name] = type(error).__name__
    views = [row.viewName for row in spark.sql("SHOW VIEWS").collect()]
    seen["views"] = [name for name in views if name.startswith("icebergds")]
    register(spark)
    return seen
