"""Keeps a table encrypted: whoever has its files, but no key of the key store, reads nothing.

    make encryption

The master key is in a file here. In earnest it is in a key management service, which the properties
of the catalog name: see docs/encryption.md.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
import tempfile
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

import icebergds
from icebergds import Catalog, Table

MASTER_KEY = "payments-key"
SECRET = "4111 1111 1111 1111"


def main(directory: Path) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.icebergpy.catalog.lake.warehouse", str(directory / "warehouse"))
        .config("spark.icebergpy.catalog.lake.encryption.kms-type", "keystore")
        .config("spark.icebergpy.catalog.lake.kms.client.keystore.path", key_store(directory))
        .getOrCreate()
    )
    icebergds.register(spark, sql=True)
    try:
        run(spark, directory)
    finally:
        spark.stop()


def key_store(directory: Path) -> str:
    """A file with one master key, which nobody but its owner may read."""
    path = directory / "keys.json"
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        json.dump({MASTER_KEY: key}, file)
    return str(path)


def run(spark: SparkSession, directory: Path) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    spark.sql(
        f"""CREATE TABLE lake.db.payments (id bigint, card string, amount decimal(9, 2))
        TBLPROPERTIES ('format-version' = '3', 'encryption.key-id' = '{MASTER_KEY}',
                       'write.delete.mode' = 'merge-on-read')"""
    )
    spark.sql(f"INSERT INTO lake.db.payments SELECT id, '{SECRET}', id + 0.5 FROM range(1000)")
    spark.sql("UPDATE lake.db.payments SET amount = 0 WHERE id < 10")
    spark.sql("DELETE FROM lake.db.payments WHERE id >= 990")
    rows = spark.sql("SELECT count(*), min(card), sum(amount) FROM lake.db.payments").first()
    print(f"As its readers see the table: {tuple(rows)}")

    table = icebergds.load_table("lake.db.payments")
    print(f"Its files: {kinds_of_files(table)}")
    found = [path for path in files(table) if SECRET.encode() in path.read_bytes()]
    print(f"Files in which a card's number stands: {len(found)}")
    assert not found

    print("Without the key service:", refusal(catalog(directory)))
    others = directory / "others"
    others.mkdir()
    print("With another key:", refusal(catalog(directory, key_store(others))))


def catalog(directory: Path, keys: str | None = None) -> Catalog:
    """The catalog of somebody who has the files, and perhaps keys."""
    properties = {"warehouse": str(directory / "warehouse")}
    if keys is not None:
        properties |= {"encryption.kms-type": "keystore", "kms.client.keystore.path": keys}
    return icebergds.load_catalog("files", location_map=None, **properties)


def refusal(lake: Catalog) -> str:
    try:
        lake.load_table("db.payments").scan().to_arrow()
    except icebergds.IcebergError as error:
        return str(error)
    raise AssertionError("the rows were read")


def files(table: Table) -> list[Path]:
    return [path for path in Path(table.location()).rglob("*") if path.is_file()]


def kinds_of_files(table: Table) -> dict[str, int]:
    """How many files begin with which four bytes: PARE and AGS1 are encrypted."""
    return dict(Counter(repr(path.read_bytes()[:4])[2:-1] for path in files(table)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as workplace:
        main(Path(workplace))
