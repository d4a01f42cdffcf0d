"""SIGTERM and Ctrl-C end commands: what is not committed is deleted, and told."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icebergds import Catalog
from icebergds.cli.many import in_threads
from icebergds.interrupts import check_stopped

_COMMAND = "from icebergds.cli.main import main; main()"
_WITH_CTRL_C = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); " + _COMMAND
)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 130)]
)
def test_a_signal_while_rows_are_appended_leaves_no_file(
    lake: Catalog, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    table = lake.create_table("db.long", "id bigint, name string")
    table.append(pa.table({"id": [-1], "name": ["before"]}))
    data = Path(table.location()) / "data"
    (before,) = data.iterdir()
    with pq.ParquetWriter(tmp_path / "rows.parquet", pa.schema(_KINDS)) as writer:
        for group in range(60):
            names = pa.array([f"{group} {at * 7919 % 1_000_003:x}" for at in range(20_000)])
            writer.write_table(pa.table([pa.array(range(20_000)), names], schema=pa.schema(_KINDS)))
    call = ["append", "db.long", str(tmp_path / "rows.parquet"), "--yes"]
    with subprocess.Popen(
        [sys.executable, "-c", _WITH_CTRL_C, *call], stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and len(list(data.iterdir())) == 1:
            time.sleep(0.001)
        process.send_signal(number)
        assert process.stderr is not None
        told = process.stderr.read()
    rows = table.refresh().scan().count()
    if process.returncode == 0:
        # It was done first.
        assert rows == 1_200_001
        return
    assert process.returncode == status
    assert "interrupted\nappend of lake.db.long was interrupted at the stage " in told
    assert rows == 1
    assert list(data.iterdir()) == [before]


_KINDS = [("id", pa.int64()), ("name", pa.string())]


def test_a_signal_at_the_prompt_of_sql_ends_it() -> None:
    program = (
        "from icebergds.cli.sql import _statements\n"
        "from icebergds.cli.termination import heed_termination\n"
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "heed_termination()\n"
        "for statement in _statements(): print(statement, flush=True)\n"
    )
    ours, theirs = pty.openpty()
    call = [sys.executable, "-c", program]
    with subprocess.Popen(
        call, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        os.write(ours, b"SELECT 2;\n")
        found = b""
        while b"SELECT 2\n" not in found:
            found += process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        # So ends Python if nobody catches what it raises.
        assert process.wait() == -signal.SIGINT
        assert process.stderr is not None
        assert process.stderr.read().endswith(b"KeyboardInterrupt\n")
    os.close(ours)
    os.close(theirs)


def test_an_interrupt_stops_what_threads_do_and_tells_what_they_did() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    begun, ended = threading.Barrier(3), []

    def press() -> None:
        begun.wait(30)
        # Python may not wait yet for a thread that it starts.
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    def work(number: int) -> None:
        begun.wait(30)
        for _ in range(1000):
            try:
                check_stopped()
            except KeyboardInterrupt as error:
                ended.append(number)
                error.add_note(f"{number} was interrupted")
                raise
            time.sleep(0.01)

    threading.Thread(target=press, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt) as raised:
            in_threads(work, [0, 1, 2], 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(ended) == [0, 1]
    assert sorted(raised.value.__notes__) == ["0 was interrupted", "1 was interrupted"]
