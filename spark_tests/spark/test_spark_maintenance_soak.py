"""A stream upserts into a table that is maintained, read and followed all the while.

`ICEBERGDS_SOAK_SECONDS` says for how long; without it, only nightly runs do it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from threading import Event, Thread

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from built.contents import used_files
from effort import rounds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from soaked_table import CHANGES, Batches, Snapshots
from spark_feeds import Feed
from spark_reads import load
from spark_writes import create

from icebergds import Table
from icebergds.errors import CommitConflictError, ValidationError

SECONDS = rounds("ICEBERGDS_SOAK_SECONDS", pull=0, nightly=300)
pytestmark = [
    pytest.mark.spark,
    pytest.mark.every_spark,
    pytest.mark.skipif(SECONDS == 0, reason="the soak is run by make nightly"),
]

# At least, however short the time.
BATCHES = 20
ROUNDS = 5
# Seconds between batches, and between rounds of the others: the table should grow old, not large.
PACE = 1.0
PAUSE = 0.5
# Many times the seconds that a busy machine takes longer.
PATIENCE = 1800
# So many batches come before maintenance has seen to the first one, however slow the machine is.
LAG = 12
PARTITIONS = 2
# A task writes data and keys to each partition.
FILES_OF_BATCH = 2 * PARTITIONS
PROPERTIES = {
    # There is a commit every few hundred milliseconds.
    "commit.retry.num-retries": "30",
    "commit.retry.max-wait-ms": "1000",
    "write.delete.mode": "merge-on-read",
    "commit.manifest.min-count-to-merge": "10",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


@pytest.mark.parametrize(("version", "share"), [(3, 1.0), (2, 0.25)])
def test_maintenance_under_a_stream_keeps_rows_and_cost_of_reads(
    spark: SparkSession,
    tmp_path: Path,
    rng: Random,
    version: int,
    share: float,
    record_property: Callable[[str, str], None],
) -> None:
    soak = Soak(spark, tmp_path, rng, version, SECONDS * share)
    try:
        soak.run()
    finally:
        for line in soak.report():
            record_property("measured", line)


@dataclass(frozen=True, slots=True)
class Read:
    """What a read of all rows found to open.

    Attributes:
        batch: the newest in the table.
        unmaintained: batches that came since the oldest of the last rounds of maintenance began.
    """

    batch: int
    unmaintained: int
    data_files: int
    delete_files: int
    keys: int
    seconds: float


class OvertakenError(Exception):
    """Rows were deleted by position in each of the three passes of a sort."""


class Loop(Thread):
    """Repeats a step until all end; a step that fails ends all.

    Attributes:
        rounds: how often the step was done.
    """

    def __init__(self, step: Callable[[Random], None], rng: Random, ended: Event) -> None:
        super().__init__(name=step.__name__)
        self._step = step
        self._rng = rng
        self._ended = ended
        self.rounds = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._ended.is_set():
                self._step(self._rng)
                self.rounds += 1
                self._ended.wait(PAUSE)
        except BaseException as error:
            error.add_note(f"in round {self.rounds} of {self.name}")
            self.error = error


def check(loops: Sequence[Loop], queries: Sequence[StreamingQuery]) -> None:
    """Raises the first error of those that run."""
    for error in [*(loop.error for loop in loops), *(query.exception() for query in queries)]:
        if error is not None:
            raise error


def same(found: pa.Table, expected: pa.Table) -> None:
    """Raises an error that names some of the rows that are wrong."""
    found = found.cast(expected.schema).combine_chunks()
    if found.equals(expected.combine_chunks()):
        return
    rows = [Counter(zip(*t.to_pydict().values(), strict=True)) for t in (found, expected)]
    wrong, missing = sorted((rows[0] - rows[1]).items()), sorted((rows[1] - rows[0]).items())
    raise AssertionError(f"of {len(found)} rows {wrong[:9]} are wrong, and {missing[:9]} missing")


class Soak:
    """A table, the stream that fills it, and those that maintain, read and follow it."""

    def __init__(
        self, spark: SparkSession, directory: Path, rng: Random, version: int, seconds: float
    ) -> None:
        self._spark = spark
        self._version = version
        self._seconds = seconds
        self._feed = Feed(spark, directory, "id long, batch long, name string")
        properties = {f"table-property.{k}": v for k, v in PROPERTIES.items()}
        empty = spark.createDataFrame([], "id long, batch long, name string")
        layout = {"partition-by": f"bucket({PARTITIONS}, id)", "format-version": str(version)}
        create(empty, self._feed.table, **layout, **properties)
        self._batches = Batches(rng.getrandbits(32))
        self._snapshots = Snapshots(self._feed.table)
        self._ended = Event()
        self._rng = rng
        self._followed = -1
        self._conflicts: Counter[str] = Counter()
        # The newest batch when the last finished round of an action began.
        self._maintained = dict.fromkeys(["rewrite", "convert"], -1)
        self._reads: list[Read] = []
        work = (self.compact, self.convert, self.expire, self.read, self.read_with_spark)
        self._loops = [Loop(step, Random(rng.random()), self._ended) for step in work]

    def run(self) -> None:
        """Runs until time, batches and rounds are enough; then all must have the last rows."""
        self._add(0)
        writer = self._write()
        writer.processAllAvailable()
        self._snapshots.load()
        follower = self._follow()
        try:
            self._run_beside([writer, follower])
            follower.processAllAvailable()
        finally:
            follower.stop()
        self._check_end()

    def _run_beside(self, queries: Sequence[StreamingQuery]) -> None:
        """Feeds the first query while the loops run; all of them end with it."""
        writer = queries[0]
        try:
            for loop in self._loops:
                loop.start()
            self._feed_until_enough(queries)
            writer.processAllAvailable()
        finally:
            self._ended.set()
            for loop in self._loops:
                loop.join()
            writer.stop()
        check(self._loops, queries)

    def compact(self, rng: Random) -> None:
        """Rewrites data files: whoever else commits, all of them, unless they are sorted."""
        options = {
            "min-input-files": "2",
            "delete-file-threshold": rng.choice(["1", "2"]),
            "partial-progress.enabled": rng.choice(["true", "false"]),
            "remove-dangling-deletes": rng.choice(["true", "false"]),
        }
        strategy = rng.choice(["binpack", "binpack", "sort"])
        order = "id desc" if strategy == "sort" else None
        with self._maintaining("rewrite", OvertakenError) as table:
            done = table.rewrite_data_files(strategy, None, order, options=options)
            if done.failed_data_files_count:
                assert strategy == "sort"
                raise OvertakenError

    def convert(self, rng: Random) -> None:
        """Converts, merges and removes deletes; the rewrite of data files may be faster."""
        with self._maintaining("convert", ValidationError, CommitConflictError) as table:
            table.convert_equality_deletes()
            table.rewrite_position_delete_files(options={"min-input-files": "2"})
            table.remove_dangling_deletes()

    def expire(self, rng: Random) -> None:
        """Rewrites manifests, expires snapshots, and removes an orphan that was planted."""
        with self._snapshots.using() as (table, _):
            table.rewrite_manifests()
        self._snapshots.expire()
        with self._snapshots.using() as (table, _):
            orphan = self._feed.table / "data" / f"orphan-{rng.getrandbits(64)}.parquet"
            orphan.write_bytes(b"orphan")
            # Old files are kept because snapshots need them, not because of their age.
            used = used_files(table.io, table.metadata, live_only=True)
            for path in (str(orphan), *used):
                os.utime(path.removeprefix("file://"), (0, 0))
            found = table.remove_orphan_files()
            assert [Path(one).name for one in found.orphan_file_locations] == [orphan.name]
            assert not orphan.exists()

    def read(self, rng: Random) -> None:
        """Reads the head, and measures it; and another snapshot."""
        maintained = min(self._maintained.values())
        with self._snapshots.using() as (table, head):
            health = table.health()
            started = time.perf_counter()
            rows = table.scan(columns=self._columns()).to_arrow()
            seconds = time.perf_counter() - started
            batch = self._check(rows, head.snapshot_id)
        deletes = health.deletes
        files = health.files.count, deletes.count, deletes.equality_keys
        found = Read(batch, batch - maintained, *files, seconds)
        assert found.data_files <= PARTITIONS + FILES_OF_BATCH * found.unmaintained, found
        assert found.delete_files <= 4 * (PARTITIONS + FILES_OF_BATCH * found.unmaintained), found
        self._reads.append(found)
        with self._snapshots.using(rng) as (table, snapshot):
            scan = table.scan(snapshot_id=snapshot.snapshot_id, columns=self._columns())
            self._check(scan.to_arrow(), snapshot.snapshot_id)

    def read_with_spark(self, rng: Random) -> None:
        with self._snapshots.using(rng) as (_, snapshot):
            chosen = {"snapshot-id": str(snapshot.snapshot_id)}
            rows = load(self._spark, self._feed.table, **chosen).toArrow()
            self._check(rows, snapshot.snapshot_id)

    def follow(self, changes: DataFrame) -> None:
        """Checks the changes of commits that follow: each batch's once, and no others."""
        found = changes.toArrow()
        self._snapshots.load()
        commits = found.group_by(["_change_ordinal", "_commit_snapshot_id"]).aggregate([])
        for commit in commits.sort_by("_change_ordinal")["_commit_snapshot_id"].to_pylist():
            batch = self._snapshots.batches[commit]
            assert batch == self._followed + 1, f"batch {batch} comes after {self._followed}"
            of_commit = found.filter(pc.equal(found["_commit_snapshot_id"], commit))
            order = [("id", "ascending"), ("_change_type", "ascending")]
            same(of_commit.select(CHANGES).sort_by(order), self._batches.changes(batch))
            self._followed = batch
            self._snapshots.follow(commit)

    def report(self) -> Iterator[str]:
        """Lines about what was done, and what reads cost."""
        yield (
            f"soak, version {self._version}: {self._snapshots.newest_batch + 1} batches, "
            f"{self._snapshots.expired} snapshots expired, conflicts {dict(self._conflicts)}"
        )
        yield f"rounds: {', '.join(f'{loop.rounds} of {loop.name}' for loop in self._loops)}"
        early = [read for read in self._reads if 10 <= read.batch < 20]
        late = self._reads[-max(len(early), 1) :]
        for name, reads in {"after the tenth batch": early, "at the end": late}.items():
            if reads:
                yield (
                    f"{name}, medians of {len(reads)} reads: "
                    f"{median(read.data_files for read in reads)} data files, "
                    f"{median(read.delete_files for read in reads)} delete files, "
                    f"{median(read.keys for read in reads)} keys, "
                    f"{median(read.unmaintained for read in reads)} batches since maintenance, "
                    f"{1000 * median(read.seconds for read in reads):.0f} ms"
                )

    def _write(self) -> StreamingQuery:
        return (
            self._feed.stream()
            .repartition("id")
            .writeStream.format("icebergpy")
            .option("write-operation", "upsert")
            .option("upsert-keys", "id")
            .option("checkpointLocation", str(self._feed.checkpoint))
            .start(str(self._feed.table))
        )

    def _follow(self) -> StreamingQuery:
        return (
            self._spark.readStream.format("icebergpy")
            .option("read-change-feed", "true")
            .option("stream-from", "earliest")
            .load(str(self._feed.table))
            .writeStream.foreachBatch(lambda changes, _: self.follow(changes))
            .option("checkpointLocation", f"{self._feed.checkpoint}-of-follower")
            .start()
        )

    def _add(self, batch: int) -> None:
        columns = self._batches.upserted(batch).to_pydict().values()
        self._feed.add(*zip(*columns, strict=True))

    def _feed_until_enough(self, queries: Sequence[StreamingQuery]) -> None:
        ends = time.monotonic() + self._seconds
        for batch in count(1):
            self._add(batch)
            fed = time.monotonic()
            while not self._has_time(batch) or time.monotonic() < fed + PACE:
                check(self._loops, queries)
                assert time.monotonic() < ends + PATIENCE, [*self.report()]
                time.sleep(0.1)
                self._snapshots.load()
            is_read = any(read.batch >= 10 for read in self._reads)
            is_late = batch >= BATCHES and time.monotonic() > ends
            if is_read and is_late and min(loop.rounds for loop in self._loops) >= ROUNDS:
                return

    def _has_time(self, batch: int) -> bool:
        """Whether the stream is not behind, nor is maintenance."""
        maintained = min(self._maintained.values())
        return self._snapshots.newest_batch >= batch - 2 and maintained >= batch - LAG

    @contextmanager
    def _maintaining(self, name: str, *conflicts: type[Exception]) -> Iterator[Table]:
        """The table for a round of maintenance, which counts as done unless it had a conflict."""
        try:
            with self._snapshots.using() as (table, head):
                began = self._snapshots.batches[head.snapshot_id]
                yield table
        except conflicts as error:
            self._conflicts[type(error).__name__] += 1
        else:
            self._maintained[name] = began

    def _columns(self) -> list[str]:
        lineage = ["_row_id", "_last_updated_sequence_number"] if self._version > 2 else []
        return ["id", "batch", "name", *lineage]

    def _check(self, rows: pa.Table, snapshot_id: int) -> int:
        """Checks the rows of a snapshot; returns its batch."""
        batch = self._snapshots.batches[snapshot_id]
        rows = rows.sort_by("id")
        same(rows.select(["id", "batch", "name"]), self._batches.rows(batch))
        if "_row_id" in rows.column_names:
            assert len(rows["_row_id"].unique()) == len(rows)
            numbers = [self._snapshots.numbers[at] for at in rows["batch"].to_pylist()]
            assert rows["_last_updated_sequence_number"].to_pylist() == numbers
        return batch

    def _check_end(self) -> None:
        last = self._snapshots.newest_batch
        assert self._followed == last
        tenth = next(read for read in self._reads if read.batch >= 10)
        table = self._snapshots.load()
        table.rewrite_data_files(options={"rewrite-all": "true"})
        table.remove_dangling_deletes()
        self.expire(self._rng)
        self.read(self._rng)
        at_end = self._reads[-1]
        assert at_end.batch == last
        assert at_end.data_files <= tenth.data_files
        assert at_end.delete_files <= tenth.delete_files
        assert at_end.keys <= tenth.keys
