"""What the command does if its streams are closed, full, or no longer read."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from command_line import Command

from icebergds import Catalog

_COMMAND = "from icebergds.cli.main import main; main()"


def _ran(words: str, redirection: str) -> tuple[int, str]:
    """The status of a process whose streams a shell redirects, and its standard error."""
    shell = f'"$0" -c "$1" {words} {redirection}'
    call = ["bash", "-c", f"set -o pipefail; {shell}", sys.executable, _COMMAND]
    ran = subprocess.run(call, stdin=subprocess.PIPE, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stderr


@pytest.mark.parametrize(
    ("words", "redirection", "status", "error"),
    [
        ("list db", ">&-", 0, ""),
        ("scan db.events --json", ">&-", 0, ""),
        ("list nosuch --json", ">&-", 2, ""),
        ("list nosuch", "2>&-", 2, ""),
        ("drop table db.events", "<&-", 2, "nobody can be asked"),
        ("--help", "| true", 0, ""),
        ("--version", "| true", 0, ""),
        ("scn --json", "| true", 2, ""),
        ("expire db.events --older-than 0s --json", "| true", 1, ""),
    ],
)
def test_streams_may_be_closed(
    lake: Catalog, words: str, redirection: str, status: int, error: str
) -> None:
    found, told = _ran(words, redirection)
    assert found == status
    assert error in told
    assert "Traceback" not in told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", ["list db", "scan db.events --json", "scn --json", "--help"])
def test_a_full_disk_is_told_on_one_line(lake: Catalog, words: str) -> None:
    status, told = _ran(words, "> /dev/full")
    assert (status, told) == (
        2,
        "error: the output cannot be written: No space left on device\n",
    )


@pytest.mark.parametrize("words", ["scan db.events --format csv", "fleet scan --charts 0"])
def test_a_file_that_does_not_fit_on_the_disk_is_not_begun(
    lake: Catalog, tmp_path: Path, words: str
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "there").write_text("before")
    (folder / "there").chmod(0o600)
    for name, limit in (("there", 10), ("new", 10), ("there", resource.RLIM_INFINITY)):
        call = [sys.executable, "-c", _COMMAND, *words.split(), "--out", str(folder / name)]
        ran = subprocess.run(
            call,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda most=limit: resource.setrlimit(  # type: ignore[misc]
                resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY)
            ),
        )
        assert [each.name for each in folder.iterdir()] == ["there"]
        is_full = limit == 10
        assert ran.returncode == (2 if is_full else 0)
        assert ran.stderr.endswith("/" + name + " cannot be written: File too large\n") is is_full
        assert ((folder / "there").read_text() == "before") is is_full
    # Who may read it is not changed.
    assert (folder / "there").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_directory_that_cannot_be_written_to_is_refused_before_tables_are_read(
    lake: Catalog, icebergds: Command
) -> None:
    Path(lake.load_table("db.events").metadata_location).write_text("{")
    # Not even root may write there.
    out = "/proc/self/report.html"
    assert icebergds("fleet", "scan", "--out", out).err == (
        f"error: --out {out}: its directory cannot be written to; choose another one\n"
    )
    assert icebergds("fleet", "scan", "--out", "/dev/null", "--charts", 0).status == 2


def test_an_interrupt_before_a_command_begins_leaves_no_trace(lake: Catalog) -> None:
    call = [
        sys.executable,
        "-c",
        "import sys, types\n"
        "class Interrupted(types.ModuleType):\n"
        "    def __getattr__(self, name): raise KeyboardInterrupt\n"
        "sys.modules['icebergds.cli.app'] = Interrupted('app')\n" + _COMMAND,
    ]
    ran = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_json_is_valid_in_every_encoding(
    lake: Catalog, icebergds: Command, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    lake.load_table("db.events").set_properties({"é": "\u20ac"})
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    call = [sys.executable, "-c", _COMMAND, "properties", "db.events", "--json"]
    ran = subprocess.run(call, capture_output=True, check=False)
    assert json.loads(ran.stdout.decode(encoding))["é"] == "\u20ac"
    shown = subprocess.run(call[:-1], capture_output=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, b"")


def test_names_cannot_steer_a_terminal(lake: Catalog, icebergds: Command) -> None:
    sign = "\x1b[31m"
    for words in (
        ["count", f"db.{sign}"],
        ["set", "db.events", f"a={sign}", "--yes"],
        ["properties", "db.events", "a"],
        ["drop", "table", f"db.{sign}"],
    ):
        ran = icebergds(*words)
        assert r"\x1b[31m" in ran.out + ran.err
        assert sign not in ran.out + ran.err
    icebergds("set", "db.events", "b=1\n2\t3", "--yes")
    assert icebergds("properties", "db.events", "b").out == "1\n2\t3\n"


def test_no_document_of_json_is_begun_before_the_first_rows_are_read(
    lake: Catalog, icebergds: Command
) -> None:
    data = Path(lake.load_table("db.events").location()) / "data"
    shutil.rmtree(data)
    ran = icebergds("scan", "db.events", "--json")
    assert ran.status == 2
    assert "error" in ran.json


def test_an_error_between_rows_is_not_a_row(lake: Catalog, icebergds: Command) -> None:
    table = lake.create_table("db.two", "id int")
    for number in range(2):
        table.append(pa.table({"id": pa.array([number] * 200_000, pa.int32())}))
    rows = ("scan", "db.two", "--format", "ndjson", "--json")
    last = json.loads(icebergds(*rows).out.splitlines()[-1])["id"]
    lasting = f"readable_metrics.id.lower_bound = {last}"
    Path(table.inspect.files(filter=lasting)["file_path"][0].as_py()).write_bytes(b"")
    ran = icebergds(*rows)
    assert ran.status == 2
    assert {tuple(json.loads(line)) for line in ran.out.splitlines()} == {("id",)}
    assert ran.err.startswith("error: ")


def test_devices_pipes_and_links_stay_what_they_are(
    lake: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    out = ("--format", "csv", "--columns", "id", "--where", "id = 1", "--out")
    assert icebergds("scan", "db.events", *out, pipe).status == 0
    assert pipe.is_fifo()
    reader.join(60)
    assert read == ['"id"\n1\n']
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    link.symlink_to(target.name)
    for _ in range(2):
        assert icebergds("scan", "db.events", *out, link).status == 0
        assert link.is_symlink()
        assert target.read_text() == '"id"\n1\n'
    longest = tmp_path / ("a" * 250)
    assert icebergds("scan", "db.events", *out, longest).status == 0


def test_limits_may_be_larger_than_64_bits(lake: Catalog, icebergds: Command) -> None:
    assert len(icebergds("scan", "db.events", "--limit", 2**63, "--json").json) == 3
    assert icebergds("diff", "db.events", "@", "--limit", 2**63).status == 0
    assert icebergds("diff", "db.events", "@" + "9" * 5000).err.startswith(
        "error: table lake.db.events has no branch or tag '9"
    )
