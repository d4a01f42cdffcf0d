"""Times TPC-DS: icebergds by SQL and over temporary views, Spark's own reader, Java Iceberg.

How the queries are run, and what the ways are, is that of `tpch.py`. DuckDB makes the data and the
queries. Which rows come first is not determined where some are equal in the order, so answers must
have as many rows as each other; that their rows are right is tested elsewhere.

    python benchmarks/tpcds.py DIRECTORY [--scale 1] [--runs 3] [--queries 1,6]

To include Java Iceberg, set ICEBERGDS_ICEBERG_JAR to its Spark runtime jar, built for the Spark
version in use.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_tpcds
import sqlglot
from tpch import compare, parser_of, start, ways_of

from icebergds import Table, load_catalog

PARTITIONED = {
    "catalog_returns": "truncate(cr_returned_date_sk, 200)",
    "catalog_sales": "truncate(cs_sold_date_sk, 200)",
    "inventory": "truncate(inv_date_sk, 200)",
    "store_returns": "truncate(sr_returned_date_sk, 200)",
    "store_sales": "truncate(ss_sold_date_sk, 200)",
    "web_sales": "truncate(ws_sold_date_sk, 200)",
}


def main() -> None:
    arguments = parser_of(__doc__.splitlines()[0], 99).parse_args()
    jar = os.environ.get("ICEBERGDS_ICEBERG_JAR")
    warehouse = arguments.directory / f"scale-{arguments.scale:g}"
    duck = connected()
    tables = filled(duck, warehouse, arguments.scale)
    asked = queries(duck)
    duck.close()
    spark = start(jar, warehouse)
    ways = ways_of(spark, tables, "tpcds", with_java=jar is not None)
    compare(spark, ways, arguments, asked, len)
    spark.stop()


def connected() -> Any:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    (extension,) = Path(duckdb_extension_tpcds.__file__).parent.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    return connection


def filled(duck: Any, warehouse: Path, scale: float) -> dict[str, Table]:
    """The tables, made once a directory."""
    catalog = load_catalog("tpcds", warehouse=str(warehouse))
    if ("tpcds",) not in catalog.list_namespaces():
        duck.execute(f"CALL dsdgen(sf={scale:g})")
        catalog.create_namespace("tpcds")
        for (name,) in duck.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            rows = duck.execute(f"SELECT * FROM {name}").to_arrow_table()
            spec = PARTITIONED.get(name)
            catalog.create_table(f"tpcds.{name}", rows.schema, partition_spec=spec).append(rows)
    return {name[-1]: catalog.load_table(name) for name in catalog.list_tables("tpcds")}


def queries(duck: Any) -> list[tuple[int, str]]:
    """The statements of the queries as Spark writes them, by the number of the query."""
    found = duck.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
    return [
        (number, statement.sql(dialect="spark"))
        for number, text in found
        for statement in sqlglot.parse(text, read="duckdb")
        if statement is not None
    ]


if __name__ == "__main__":
    main()
