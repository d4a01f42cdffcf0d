"""The mistakes of the tour: each is one clear error, and changes nothing."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from tour_model import SCHEMA, Tour, start

import icebergds


def errors(tour: Tour) -> None:
    table, rides = tour.table, tour.rides(400, 410)
    stale = icebergds.load_table(tour.location)
    table.append(rides)
    twice = rides.union(rides)
    load = tour.spark.read.format("icebergpy").load
    write = rides.write.format("icebergpy").option("distribution-mode", "none")
    numbers = rides.selectExpr("id", "12345678901.5 AS fare").write.format("icebergpy")
    merge = table.merge(twice, "id").when_matched_update({"city": "source.city"})
    invalid = {"write.delete.mode": "merge_on_read"}
    stream = tour.spark.readStream.format("icebergpy").option("stream-from", "earliest")
    nowhere, elsewhere = f"{tour.directory}/nowhere", f"{tour.directory}/elsewhere"
    failing: dict[str, Callable[[], object]] = {
        "NoSuchTableError: load_table": lambda: tour.catalog.load_table("tour.rads"),
        "NoSuchTableError: load": lambda: load(nowhere).count(),
        "NoSuchTableError: save": lambda: write.mode("append").save(nowhere),
        "NoSuchSnapshotError: scan": lambda: table.scan(snapshot_id=1).to_df(tour.spark),
        "InvalidOptionError: unknown option": lambda: tour.load(snapshot="1").count(),
        "InvalidOptionError: table property": lambda: tour.catalog.create_table(
            "tour.t", SCHEMA, properties=invalid
        ),
        "InvalidOptionError: stream over deletes": lambda: start(
            stream.load(tour.location), elsewhere, tour.directory / "failed", {"create": "true"}
        ),
        "InvalidFilterError: unknown column": lambda: table.scan("citty = 'a'").to_df(tour.spark),
        "InvalidFilterError: function": lambda: tour.load(filter="upper(city) = 'A'").count(),
        "InvalidFilterError: no time zone": lambda: table.scan(
            "started > '2026-03-01 08:00:00'"
        ).to_arrow(),
        "InvalidFilterError: delete": lambda: table.delete("rand() < 0.1"),
        "InvalidDataError: too many columns": lambda: table.append(rides.withColumn("x", f.lit(1))),
        "InvalidDataError: too few columns": lambda: table.append(rides.drop("id")),
        "InvalidDataError: type": lambda: table.append(rides.withColumn("fare", f.lit("1.5"))),
        "InvalidDataError: null": lambda: table.append(rides.selectExpr("nullif(id, 405) AS id")),
        "InvalidDataError: out of range": lambda: numbers.mode("append").save(tour.location),
        "InvalidDataError: update": lambda: table.update({"price": "1"}, "id = 1"),
        "InvalidDataError: merge": merge.execute,
        "InvalidDataError: upsert": lambda: table.upsert(twice, ["id", "day"]),
        "ValidationError: overwrite part of a file": lambda: table.overwrite(
            rides.toArrow(), "id = 81"
        ),
        "ValidationError: concurrent commit": lambda: stale.overwrite(rides, "id >= 400"),
    }
    for name, fail in failing.items():
        error, _, what = name.partition(": ")
        message = message_of(fail)
        if not message.startswith(f"{error}: "):
            sys.exit(f"{what}: should be {error}, is {message}")
        print(textwrap.shorten(f"{what}: {message}", 150))
    tour.done("errors change nothing", "INSERT INTO rides BY NAME FROM new")


def message_of(fail: Callable[[], object]) -> str:
    """The first line of an error of icebergds, which Spark may have put into one of its own."""
    try:
        fail()
    except icebergds.IcebergError as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    except PySparkException as error:
        _, _, message = str(error).partition("icebergds.errors.")
        return message.splitlines()[0] if message else f"foreign: {error}"
    return "no error"
