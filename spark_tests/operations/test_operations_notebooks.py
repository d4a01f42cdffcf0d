"""Actions show their progress beneath the cell of a notebook, in a kernel of IPython."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from built.api_tables import new_table, rows

pytest.importorskip("ipykernel")
from jupyter_client.manager import start_new_kernel

_DAYS = 3
_PATIENCE = 60.0
# It takes a while to read each group of files.
_SLOW = """
import time, icebergds
from icebergds.api import progress
from icebergds.operations.maintenance.rewrite import task

read = task.read_scan_tasks

def read_slowly(plan, files):
    time.sleep(0.4)
    yield from read(plan, files)

task.read_scan_tasks = read_slowly
progress._SECONDS_UNTIL_SHOWN, progress._Cell.seconds = 0.2, 0.2
"""
_REWRITE = """
options = {"rewrite-all": "true", "max-concurrent-file-group-rewrites": "1"}
done = icebergds.load_table(location).rewrite_data_files(options=options)
"""


# Of the bytes of all groups.
_BAR = re.compile(r'<progress max="(\d+)" value="(\d+)"></progress> rewrite_data_files .*')


class _Notebook:
    """A kernel, and the messages that its cells have sent."""

    def __init__(self, client: Any, manager: Any) -> None:
        self._client, self.manager = client, manager

    def run(self, code: str) -> list[dict[str, Any]]:
        """Runs a cell; what it has shown, in order."""
        shown: list[dict[str, Any]] = []
        self._client.execute_interactive(code, output_hook=shown.append, timeout=_PATIENCE)
        # Those that say that the kernel is busy, and what it runs, show nothing.
        kinds = {"execute_input", "status"}
        return [message for message in shown if message["msg_type"] not in kinds]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Notebook]:
    manager, client = start_new_kernel(startup_timeout=_PATIENCE)
    try:
        notebook = _Notebook(client, manager)
        assert notebook.run(_SLOW) == []
        yield notebook
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture
def location(tmp_path: Path) -> str:
    table = new_table(tmp_path, partition_by="day")
    for day in range(_DAYS):
        table.append(rows(day, day=day))
    return table.location()


def test_a_cell_shows_one_bar_that_goes_on_and_disappears(
    notebook: _Notebook, location: str
) -> None:
    first, *updates = notebook.run(f"location = {location!r}{_REWRITE}")
    assert first["msg_type"] == "display_data"
    assert {message["msg_type"] for message in updates} == {"update_display_data"}
    shown = {message["content"]["transient"]["display_id"] for message in (first, *updates)}
    assert len(shown) == 1
    # A few in a second.
    assert len(updates) < 30
    bars = [message["content"]["data"]["text/html"] for message in updates[:-1]]
    parts = [_BAR.fullmatch(bar) for bar in bars if "rewrite groups" in bar]
    done = {float(part[2]) / float(part[1]) for part in parts if part is not None}
    assert len(done) > 1
    assert all(0 <= part <= 1 for part in done)
    assert set(updates[-1]["content"]["data"].values()) == {""}


@pytest.mark.parametrize(
    "code", [f"icebergds.progress(False)\n{_REWRITE}", _REWRITE.replace(")\n", ", progress=False)")]
)
def test_a_cell_shows_nothing_if_told_so(notebook: _Notebook, location: str, code: str) -> None:
    assert notebook.run(f"location = {location!r}\n{code}") == []
    notebook.run("icebergds.progress(True)")


def test_an_interrupted_cell_says_what_is_committed(notebook: _Notebook, location: str) -> None:
    interruption = threading.Timer(0.6, notebook.manager.interrupt_kernel)
    interruption.start()
    *shown, error = notebook.run(f"location = {location!r}\n{_REWRITE}")
    assert error["content"]["ename"] == "KeyboardInterrupt"
    assert any("nothing was committed" in line for line in error["content"]["traceback"])
    (last,) = (m for m in shown[-2:] if m["msg_type"] == "update_display_data")
    assert set(last["content"]["data"].values()) == {""}


def test_the_bar_of_an_action_that_fails_disappears(notebook: _Notebook, location: str) -> None:
    for file in Path(location).rglob("*.parquet"):
        file.unlink()
    *shown, error = notebook.run(f"location = {location!r}\n{_REWRITE}")
    assert error["msg_type"] == "error"
    assert set(shown[-1]["content"]["data"].values()) == {""}
