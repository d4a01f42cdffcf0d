"""Actions show how far they have come, and stop at Ctrl-C."""

from __future__ import annotations

import logging
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from built.api_tables import ids_of, new_table, rows
from built.contents import unused_files

from icebergds import Progress, Table
from icebergds.errors import InvalidOptionError

_DAYS = 5
# Two data files of each day, what deleted a row, and the metadata of each append and delete.
_EXPIRED = 2 * _DAYS + 2 * (2 * _DAYS) + 1
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
    table = new_table(tmp_path, partition_by="day")
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


def _expired(table: Table, **how: Any) -> object:
    table.rewrite_data_files(options={"rewrite-all": "true"}, progress=False)
    return table.expire_snapshots(int(time.time() * 1000) + 1000, retain_last=1, **how)


def _orphans(table: Table, **how: Any) -> object:
    orphan = Path(table.location()) / "data" / "orphan.parquet"
    orphan.write_bytes(b"")
    os.utime(orphan, (0, 0))
    return table.remove_orphan_files(**how)


_ACTIONS: dict[str, tuple[str, int, Callable[..., Any]]] = {
    "rewrite_data_files": (
        "rewrite groups",
        _DAYS,
        lambda table, **how: table.rewrite_data_files(options=_REWRITE, **how),
    ),
    "convert_equality_deletes": (
        "convert files",
        1,
        lambda table, **how: table.convert_equality_deletes(**how),
    ),
    "rewrite_manifests": (
        "rewrite manifests",
        2 * _DAYS,
        lambda table, **how: table.rewrite_manifests(**how),
    ),
    "remove_dangling_deletes": (
        "read manifests",
        # Those of data files once more, for the bounds of keys.
        2 * _DAYS + 1 + 2 * _DAYS,
        lambda table, **how: table.remove_dangling_deletes(**how),
    ),
    "expire_snapshots": ("delete files", _EXPIRED, _expired),
    "remove_orphan_files": ("delete files", 1, _orphans),
    "add_files": ("read footers", 3, _imported),
    "compute_table_stats": (
        "read files",
        2 * _DAYS,
        lambda table, **how: table.compute_table_stats(**how),
    ),
    "compute_partition_stats": (
        "read manifests",
        2 * _DAYS + 1,
        lambda table, **how: table.compute_partition_stats(**how),
    ),
    "rewrite_table_path": (
        "write manifests",
        2 * _DAYS + 1,
        lambda table, **how: table.rewrite_table_path(table.location(), "/elsewhere", **how),
    ),
    "maintain": (
        "rewrite_data_files: rewrite groups",
        1,
        lambda table, **how: table.maintain(**how),
    ),
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
    stage, total, act = _ACTIONS[action]
    seen: list[Progress] = []
    act(table, progress=seen.append)
    assert {(each.action, each.table) for each in seen} == {(action, table.name)}
    assert seen[0].stage == "plan"
    of_stage = [each for each in seen if each.stage == stage]
    assert [each.done for each in of_stage] == sorted(each.done for each in of_stage)
    last = of_stage[-1]
    assert (last.done, last.total, last.left) == (total, total, 0)
    assert last.bytes_done == (last.bytes_total or 0)
    assert [each.seconds for each in seen] == sorted(each.seconds for each in seen)


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
