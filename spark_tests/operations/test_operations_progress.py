"""Actions show how far they have come, and stop at Ctrl-C."""

from __future__ import annotations

import inspect
import logging
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from built.api_tables import ids_of, new_table, rows
from built.contents import unused_files

import icebergds
from icebergds import Progress, Table, delete_reachable_files, load_catalog
from icebergds.errors import InvalidOptionError

_DAYS = 5
# Two data files of each day, what deleted a row, and the metadata of each append and delete.
_EXPIRED = 2 * _DAYS + 2 * (2 * _DAYS) + 1
# The files, and the manifest, list of manifests and metadata of their commits; the first metadata
# file, and the hint to the last one.
_REACHABLE = 4 * (2 * _DAYS + 1) + 2
_PATIENCE = 60.0
_REWRITE = {
    "rewrite-all": "true",
    "max-concurrent-file-group-rewrites": "1",
    "partial-progress.enabled": "true",
    "partial-progress.max-commits": str(_DAYS),
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two files in each of five partitions, one with an equality delete."""
    by_key = {"write.upsert.mode": "equality-deletes"}
    table = new_table(tmp_path, partition_by="day", properties=by_key)
    for day in range(_DAYS):
        table.append(rows(2 * day, day=day))
        table.append(rows(2 * day + 1, day=day))
    table.delete_keys(rows(0, day=0), ["id", "day"])
    return table


def _imported(table: Table, **how: Any) -> object:
    folder = Path(table.location()).parent / "landing" / "day=9"
    folder.mkdir(parents=True)
    for number in range(3):
        pq.write_table(rows(number, day=9), folder / f"{number}.parquet")
    return table.add_files(folder, **how)


def _with_position_deletes(table: Table) -> Table:
    """A position delete file replaces the equality delete."""
    table.convert_equality_deletes()
    return table


def _expired(table: Table, **how: Any) -> object:
    table.rewrite_data_files(options={"rewrite-all": "true"}, progress=False)
    return table.expire_snapshots(int(time.time() * 1000) + 1000, retain_last=1, **how)


def _orphans(table: Table, **how: Any) -> object:
    orphan = Path(table.location()) / "data" / "orphan.parquet"
    orphan.write_bytes(b"")
    os.utime(orphan, (0, 0))
    return table.remove_orphan_files(**how)


def _deleted(table: Table, **how: Any) -> object:
    return delete_reachable_files(table.metadata_location, **how)


def _purged(table: Table, **how: Any) -> None:
    # The table's location is in the warehouse as this catalog places it.
    warehouse = Path(table.location()).parents[1]
    load_catalog("lake", warehouse=warehouse).purge_table("db.t", **how)


@dataclass(frozen=True)
class _Action:
    """What an action reports: its stages in order after `plan`, and the end of one of them."""

    stages: tuple[str, ...]
    stage: str
    total: int
    act: Callable[..., object]


_MANIFESTS = 2 * _DAYS + 1
_ACTIONS = {
    "rewrite_data_files": _Action(
        ("read manifests", "rewrite groups"),
        "rewrite groups",
        _DAYS,
        lambda table, **how: table.rewrite_data_files(options=_REWRITE, **how),
    ),
    "rewrite_position_delete_files": _Action(
        ("rewrite delete files",),
        "rewrite delete files",
        1,
        lambda table, **how: _with_position_deletes(table).rewrite_position_delete_files(
            options={"rewrite-all": "true"}, **how
        ),
    ),
    "convert_equality_deletes": _Action(
        ("read manifests", "convert files"),
        "convert files",
        1,
        lambda table, **how: table.convert_equality_deletes(**how),
    ),
    "rewrite_manifests": _Action(
        ("rewrite manifests",),
        "rewrite manifests",
        2 * _DAYS,
        lambda table, **how: table.rewrite_manifests(**how),
    ),
    "remove_dangling_deletes": _Action(
        ("read manifests",),
        "read manifests",
        # Those of data files once more, for the bounds of keys.
        _MANIFESTS + 2 * _DAYS,
        lambda table, **how: table.remove_dangling_deletes(**how),
    ),
    "expire_snapshots": _Action(
        ("read manifests", "delete files"), "delete files", _EXPIRED, _expired
    ),
    "remove_orphan_files": _Action(
        ("list files", "read manifests", "delete files"), "delete files", 1, _orphans
    ),
    "add_files": _Action(
        ("list files", "read footers", "read manifests"), "read footers", 3, _imported
    ),
    "compute_table_stats": _Action(
        ("read manifests", "read files"),
        "read files",
        2 * _DAYS,
        lambda table, **how: table.compute_table_stats(**how),
    ),
    "compute_partition_stats": _Action(
        ("read manifests",),
        "read manifests",
        _MANIFESTS,
        lambda table, **how: table.compute_partition_stats(**how),
    ),
    "rewrite_table_path": _Action(
        ("list delete files", "write delete files", "write manifests"),
        "write manifests",
        _MANIFESTS,
        lambda table, **how: table.rewrite_table_path(table.location(), "/elsewhere", **how),
    ),
    "maintain": _Action(
        (
            "read manifests",
            "convert_equality_deletes",
            "convert_equality_deletes: read manifests",
            "convert_equality_deletes: convert files",
            "rewrite_data_files",
            "rewrite_data_files: read manifests",
            "rewrite_data_files: rewrite groups",
            "remove_dangling_deletes",
            "remove_dangling_deletes: read manifests",
            "rewrite_manifests",
            "rewrite_manifests: rewrite manifests",
        ),
        "rewrite_data_files: rewrite groups",
        1,
        lambda table, **how: table.maintain(**how),
    ),
    "health": _Action(
        ("read manifests",), "read manifests", _MANIFESTS, lambda table, **how: table.health(**how)
    ),
    "report": _Action(
        ("read manifests", "list files"),
        "read manifests",
        2 * _MANIFESTS,
        lambda table, **how: table.report(
            Path(table.location()).parent / "report.html", orphans=True, **how
        ),
    ),
    "verify": _Action(
        ("read manifests", "list files", "compare deletes", "read files", "read position deletes"),
        "read files",
        _MANIFESTS,
        lambda table, **how: table.verify("rows", **how),
    ),
    "find_stored_rows": _Action(
        ("read manifests", "read files", "list files"),
        "read files",
        # The equality delete, too.
        2,
        lambda table, **how: table.find_stored_rows("id = 0", **how),
    ),
    "delete_reachable_files": _Action(
        ("read manifests", "delete files"), "delete files", _REACHABLE, _deleted
    ),
    "purge_table": _Action(("read manifests", "delete files"), "delete files", _REACHABLE, _purged),
}


_SLOW = """
import os, sys, time, logging
from pathlib import Path
import icebergds
from icebergds.api import progress
from icebergds.operations.maintenance.rewrite import task

# Reading goes on once a file is there, unless it is of the first groups.
location, quick, go = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
read, groups = task.read_scan_tasks, iter(range(100))

def read_slowly(plan, files):
    number = next(groups)
    for batch in read(plan, files):
        yield batch
        while number >= quick and not go.exists():
            time.sleep(0.02)
            yield batch[:0]

task.read_scan_tasks = read_slowly
progress._SECONDS_UNTIL_SHOWN, progress._Lines.seconds = 0.0, 0.1
table = icebergds.load_table(location)
"""
_REWRITING = f"table.rewrite_data_files(options={_REWRITE!r})"


@contextmanager
def _program(
    table: Table, code: str, quick: int = 0, **how: Any
) -> Iterator[tuple[subprocess.Popen[str], Callable[[], None]]]:
    """Runs a program with a slow table, and what lets it go on."""
    go = Path(table.location()).parent / "go"
    command = [sys.executable, "-c", _SLOW + code, table.location(), str(quick), str(go)]
    process = subprocess.Popen(command, text=True, **how)
    try:
        yield process, go.touch
    finally:
        process.kill()
        process.wait()


def _read_until(terminal: int, text: str) -> str:
    """What a program shows on a terminal, until a text or its end."""
    shown = ""
    with suppress(OSError):
        while text not in shown and (piece := os.read(terminal, 4096)):
            shown += piece.decode(errors="replace")
    return shown


def _wait_for(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + _PATIENCE
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.05)


@contextmanager
def _terminal() -> Iterator[tuple[int, int]]:
    ours, its = pty.openpty()
    try:
        yield ours, its
    finally:
        os.close(ours)
        with suppress(OSError):
            os.close(its)


@pytest.mark.parametrize("action", _ACTIONS)
def test_a_callback_gets_each_stage_up_to_its_end(table: Table, action: str) -> None:
    of = _ACTIONS[action]
    seen: list[Progress] = []
    of.act(table, progress=seen.append)
    assert {each.action for each in seen} == {action}
    assert len({each.table for each in seen}) == 1
    assert list(dict.fromkeys(each.stage for each in seen)) == ["plan", *of.stages]
    of_stage = [each for each in seen if each.stage == of.stage]
    # A stage may come several times.
    last_time = of_stage[max(at for at, each in enumerate(of_stage) if each.done == 0) :]
    assert [each.done for each in last_time] == sorted(each.done for each in last_time)
    last = of_stage[-1]
    assert (last.done, last.total, last.left) == (of.total, of.total, 0)
    ended = [each for each, after in pairwise(seen) if after.stage != each.stage]
    assert [each for each in (*ended, seen[-1]) if each.left] == []
    assert last.bytes_done == (last.bytes_total or 0)
    assert [each.seconds for each in seen] == sorted(each.seconds for each in seen)


def test_each_action_with_progress_is_tested() -> None:
    public = [getattr(icebergds, name) for name in icebergds.__all__]
    classes = [each for each in public if inspect.isclass(each)]
    methods = [each for one in classes for _, each in inspect.getmembers(one, inspect.isfunction)]
    functions = [each for each in public if inspect.isfunction(each)] + methods
    found = {each.__name__ for each in functions if "progress" in _parameters(each)}
    # These two need Spark.
    assert found - {"snapshot", "migrate"} == _ACTIONS.keys()


def _parameters(function: Callable[..., object]) -> Container[str]:
    return inspect.signature(function).parameters


def test_deletes_that_are_moved_to_rewritten_files_are_a_stage(tmp_path: Path) -> None:
    table = new_table(tmp_path, version=3)
    table.append(rows(1, 2, 3))
    seen: list[str] = []

    def delete(progress: Progress) -> None:
        seen.append(progress.stage)
        if seen.count("rewrite groups") == 1 and seen[-1] == "rewrite groups":
            icebergds.load_table(table.location()).delete_keys(rows(2), "id")

    table.rewrite_data_files(options={"rewrite-all": "true"}, progress=delete)
    assert ids_of(table) == [1, 3]
    assert "rewrite groups: move deletes" in seen


def test_a_callback_that_raises_is_not_called_again(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    def fail(progress: Progress) -> None:
        calls.append(progress)
        raise ValueError("no")

    done = table.rewrite_data_files(options=_REWRITE, progress=fail)
    assert done.rewritten_data_files_count == 2 * _DAYS
    assert len(calls) == 1
    (record,) = (r for r in caplog.records if "`progress` raised" in r.message)
    assert record.levelno == logging.WARNING


def test_progress_is_a_flag_or_a_function(table: Table) -> None:
    with pytest.raises(InvalidOptionError, match="progress = 'yes'"):
        table.rewrite_manifests(progress="yes")  # type: ignore[arg-type]


def test_a_terminal_shows_a_bar_that_disappears(table: Table) -> None:
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140"}
    with (
        _terminal() as (ours, its),
        _program(table, _REWRITING, quick=2, stderr=its, env=environment) as (process, go),
    ):
        os.close(its)
        shown = _read_until(ours, f"2 of {_DAYS}")
        assert "rewrite_data_files: rewrite groups" in shown
        go()
        # The line of the bar is erased.
        assert "\x1b[2K" in _read_until(ours, "\0")
        assert process.wait(_PATIENCE) == 0


@pytest.mark.parametrize(
    "code",
    [
        f"icebergds.progress(False)\n{_REWRITING}",
        _REWRITING.replace(")", ", progress=False)"),
        _REWRITING.replace(")", ", progress=lambda progress: None)"),
    ],
)
def test_a_terminal_shows_nothing_if_told_so(table: Table, code: str) -> None:
    with _terminal() as (ours, its), _program(table, code, stderr=its) as (process, go):
        os.close(its)
        time.sleep(2)
        go()
        assert _read_until(ours, "\0") == ""
        assert process.wait(_PATIENCE) == 0


def test_without_a_terminal_lines_are_logged(table: Table, tmp_path: Path) -> None:
    log = tmp_path / "log"
    logged = f"logging.basicConfig(filename={str(log)!r}, level=logging.INFO)\n{_REWRITING}"
    pipe = subprocess.PIPE
    with _program(table, logged, quick=2, stdout=pipe, stderr=pipe) as (process, go):
        line = f"rewrite_data_files {table.name}: rewrite groups, 2 of {_DAYS}, "
        _wait_for(lambda: log.exists() and line in log.read_text())
        go()
        assert process.communicate(timeout=_PATIENCE) == ("", "")
    assert "icebergds.api.progress" in log.read_text()


def test_ctrl_c_keeps_what_is_committed_and_deletes_the_rest(table: Table) -> None:
    before, snapshots = ids_of(table), len(table.snapshots())
    # What starts the tests may ignore Ctrl-C, as shells do for jobs in the background.
    code = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    {_REWRITING}
except KeyboardInterrupt:
    print(time.time())
    raise
"""
    pipe = subprocess.PIPE
    with _program(table, code, quick=3, stdout=pipe, stderr=pipe) as (process, _):
        _wait_for(lambda: len(table.refresh().snapshots()) == snapshots + 3)
        interrupted = time.time()
        process.send_signal(signal.SIGINT)
        stopped, shown = process.communicate(timeout=_PATIENCE)
    assert process.returncode == -signal.SIGINT
    # Within a second on a machine that is not busy.
    assert float(stopped) - interrupted < _PATIENCE / 2
    assert f"3 commits stand with 3 of {_DAYS} groups, new files" in shown
    assert ids_of(table.refresh()) == before
    assert unused_files(table) == set()
