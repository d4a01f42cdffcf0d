"""Many processes append to one table of a REST catalog, of which some answers are lost."""

from __future__ import annotations

import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
from effort import IS_NIGHTLY
from processes import CONTEXT
from rest_proxy import Fault, Seen, rest_proxy
from rest_server import RestServer
from rest_tables import create_table, open_rest_catalog

import icebergds
from icebergds.catalog.rest.http import Answer
from icebergds.catalog.rest.session import SeenTables
from icebergds.errors import CommitStateUnknownError

_PROCESSES, _APPENDS = (8, 20) if IS_NIGHTLY else (4, 5)
_FAULTS = (Fault.ANSWER_LOST, Fault.DONE_500, Fault.DONE_502, Fault.DONE_HTML, Fault.THROTTLED)
_PROPERTIES = {
    "commit.retry.num-retries": "10000",
    "commit.retry.min-wait-ms": "10",
    "commit.retry.max-wait-ms": "500",
    "commit.status-check.min-wait-ms": "10",
}


def test_each_append_of_many_processes_is_there_once(rest: RestServer, rng: random.Random) -> None:
    path = rest.new_catalog()
    catalog = icebergds.load_catalog("lake", uri=rest.uri(path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint", properties=_PROPERTIES)

    def break_some(seen: Seen) -> Fault | None:
        is_commit = seen.method == "POST" and seen.path.endswith("/tables/t")
        return rng.choice(_FAULTS) if is_commit and rng.random() < 0.3 else None

    with rest_proxy(rest.port) as proxy:
        proxy.fault = break_some
        uri = rest.uri(path, proxy.port)
        with ProcessPoolExecutor(_PROCESSES, CONTEXT) as pool:
            futures = [pool.submit(_append_many, uri, i) for i in range(_PROCESSES)]
            outcomes = [future.result(timeout=300) for future in futures]
    done = {row for rows, _ in outcomes for row in rows}
    # The answer to a commit that lost against another one may be lost, too.
    unknown = {row for _, rows in outcomes for row in rows}
    files = table.refresh().inspect.files()["file_path"].to_pylist()
    found = Counter(row for file in files for row in pq.read_table(file)["id"].to_pylist())
    assert set(found.values()) == {1}
    assert done <= found.keys() <= done | unknown
    assert len(done) > len(unknown)
    assert table.current_snapshot().summary["total-records"] == str(len(found))


def _append_many(uri: str, process: int) -> tuple[list[int], list[int]]:
    """Appends rows, one in a commit; returns those that were, and those that may be."""
    table = icebergds.load_catalog("lake", uri=uri).load_table("db.t")
    done, unknown = [], []
    for row in range(process * 1000, process * 1000 + _APPENDS):
        try:
            table.append(pa.table({"id": [row]}))
            done.append(row)
        except CommitStateUnknownError:
            unknown.append(row)
    return done, unknown


def test_threads_that_keep_tables_count_their_sizes_right(rest: RestServer) -> None:
    catalog = open_rest_catalog(rest.uri(rest.new_catalog()))
    state, seen = create_table(catalog), SeenTables(most_bytes=1000)
    small, large = (Answer(200, {"ETag": "x"}, {}, size) for size in (100, 900))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: seen.keep("t", small, state), range(20_000)))
    finally:
        sys.setswitchinterval(before)
    seen.keep("u", large, state)
    assert seen.find("t") is not None
