"""Many tables are maintained as a policy says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from command_line import Command, Ran

from icebergds import Catalog, InvalidOptionError, Table
from icebergds.cli.fleet_policy import read_policy

_RUN = "from icebergds.cli.main import main; main()"


def small(lake: Catalog, name: str, files: int = 6) -> Table:
    """A table of small files, which maintenance makes one."""
    table = lake.create_table(name, "id bigint")
    for id in range(files):
        table.append(pa.table({"id": [id]}))
    return table


def lines(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def written(folder: Path, text: str) -> Path:
    policy = folder / "policy.toml"
    policy.write_text(text)
    return policy


def test_the_most_useful_work_comes_first_and_a_broken_table_stops_no_other(
    lake: Catalog, icebergds: Command
) -> None:
    less, more = small(lake, "db.less", 6), small(lake, "db.more", 12)
    broken = lake.create_table("db.broken", "id int")
    Path(broken.metadata_location).write_text("{")
    dry = icebergds("fleet", "maintain", "lake", "--json")
    assert dry.status == 2
    assert len(less.refresh().inspect.files()) == 6
    ran = icebergds("fleet", "maintain", "lake", "--apply", "--json")
    assert ran.status == 2
    *steps, last = lines(ran)
    assert steps[0]["table"] == "lake.db.broken"
    assert steps[0]["error"]["type"]
    done = [each["table"] for each in steps[1:]]
    assert done == sorted(done, reverse=True)
    assert {"lake.db.more", "lake.db.less"} == set(done)
    assert {each["action"] for each in steps[1:]} >= {"rewrite_data_files"}
    assert last["summary"]["tables"] == 4
    assert last["summary"]["with_something_to_do"] == 2
    assert len(less.refresh().inspect.files()) == len(more.refresh().inspect.files()) == 1
    again = icebergds("fleet", "maintain", "lake", "--apply", "--json")
    assert lines(again)[-1]["summary"]["with_something_to_do"] == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    ("redirection", "status", "told"),
    [
        ("| head -1", 0, ""),
        (">&-", 0, ""),
        ("> /dev/full", 2, "error: the output cannot be written: No space left on device\n"),
    ],
)
def test_a_log_that_ends_stops_no_maintenance(
    lake: Catalog, redirection: str, status: int, told: str
) -> None:
    tables = [small(lake, f"db.{name}") for name in "abcdef"]
    shell = f'"$0" -c "$1" fleet maintain lake --apply {redirection}; exit ${{PIPESTATUS[0]}}'
    call = ["bash", "-c", shell, sys.executable, _RUN]
    ran = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (status, told)
    assert [len(table.refresh().inspect.files()) for table in tables] == [1] * 6


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_policy_says_which_tables_get_what(
    lake: Catalog, icebergds: Command, tmp_path: Path, jobs: int
) -> None:
    tables = {name: small(lake, f"db.{name}") for name in ("a", "b", "c")}
    text = """
        [[tables]]
        match = "lake.db.b"
        skip = true
        [[tables]]
        match = "lake.*.c"
        rewrite_data_files = false
    """
    policy = written(tmp_path, text)
    words = ("fleet", "maintain", "lake", "--policy", policy, "--jobs", jobs)
    assert icebergds(*words, "--apply").status == 0
    files = {name: len(table.refresh().inspect.files()) for name, table in tables.items()}
    assert files == {"a": 1, "b": 6, "c": 6}


def test_rules_that_match_no_table_are_told(
    lake: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    small(lake, "db.audit")
    small(lake, "db.b")
    text = """
        [[tables]]
        match = "lake.db.b"
        skip = true
        [[tables]]
        match = "lake.other.*"
        rewrite_data_files = false
    """
    words = ("fleet", "maintain", "lake", "--policy", written(tmp_path, text))
    shown = icebergds(*words).out
    assert "1 table left alone by a rule" in shown
    assert "no table matches 'lake.other.*'" in shown
    summary = lines(icebergds(*words, "--json"))[-1]["summary"]
    assert (summary["left_alone"], summary["rules_without_tables"]) == (1, ["lake.other.*"])


def test_a_rule_that_protects_no_table_is_refused_before_anything_is_changed(
    lake: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    table = small(lake, "db.audit")
    policy = written(tmp_path, '[[tables]]\nmatch = "audit"\nskip = true\n')
    ran = icebergds("fleet", "maintain", "lake", "--policy", policy, "--apply")
    assert ran.status == 2
    assert "match = 'audit' with skip = true matches no table" in ran.err
    assert "lake.db.audit" in ran.err
    assert len(table.refresh().inspect.files()) == 6
    # Of a part of the catalog, others are left alone anyway.
    other = written(tmp_path, '[[tables]]\nmatch = "lake.other.*"\nskip = true\n')
    assert icebergds("fleet", "maintain", "lake.db", "--policy", other, "--apply").status == 0


def test_the_budget_of_all_ends_the_work(lake: Catalog, icebergds: Command, tmp_path: Path) -> None:
    tables = [small(lake, f"db.t{number}") for number in range(3)]
    size = sum(tables[0].inspect.files()["file_size_in_bytes"].to_pylist())
    policy = written(tmp_path, f"[budget]\nmax_bytes = {size + 1}\n")
    words = ("fleet", "maintain", "lake", "--policy", policy, "--apply", "--json")
    ran = icebergds(*words)
    assert ran.status == 1
    summary = lines(ran)[-1]["summary"]
    assert 0 < summary["bytes_read"] <= size + 1
    assert sum(len(table.refresh().inspect.files()) == 1 for table in tables) == 1
    # What is left is done by other runs.
    for _ in range(3):
        icebergds(*words)
    assert all(len(table.refresh().inspect.files()) == 1 for table in tables)


def test_nothing_is_begun_outside_of_the_windows(
    lake: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    table = small(lake, "db.a")
    hour = (datetime.now().hour + 12) % 24
    policy = written(tmp_path, f'[budget]\nwindows = ["{hour:02}:00-{hour:02}:59"]\n')
    ran = icebergds("fleet", "maintain", "lake", "--policy", policy, "--apply", "--json")
    assert (ran.status, lines(ran)[-1]["summary"]["not_begun"]) == (1, ["lake.db.a"])
    assert len(table.refresh().inspect.files()) == 6


def test_windows_go_beyond_midnight(tmp_path: Path) -> None:
    policy = read_policy(written(tmp_path, '[budget]\nwindows = ["22:00-06:00"]'))
    is_open = {hour: policy.is_open(datetime(2026, 1, 1, hour)) for hour in (21, 22, 0, 5, 6)}
    assert is_open == {21: False, 22: True, 0: True, 5: True, 6: False}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[default]", "unknown key 'default'; did you mean 'defaults'?"),
        (
            "[defaults]\nretain_lst = 1",
            "defaults: unknown key 'retain_lst'; did you mean 'retain_last'?",
        ),
        ("[defaults]\nretain_last = 0", "defaults: retain_last = 0"),
        ("[[tables]]\nskip = true", "tables 1: it needs match"),
        ('[[tables]]\nmatch = "*"\nskip = 1', "tables 1: skip = 1: expected true or false"),
        ("[budget]\nmax_bytes = -1", "max_bytes = -1"),
        ('[budget]\nwindows = ["22:00-22:00"]', "leave windows out to begin tables at any time"),
        ("a = " + "[" * 5000, "its values are nested too deeply"),
        ('[budget]\nwindows = ["25:00-06:00"]', "window '25:00-06:00': expected such as"),
        ("defaults = 3", "defaults: expected a table of keys and values"),
        ('[defaults]\nmatch = "x"', "defaults: unknown key 'match'"),
        ("[budget]\nmax_seconds = 0", "budget: max_seconds = 0"),
        ("tables = 1", "tables: expected [[tables]]"),
        ("[defaults", "policy.toml: "),
    ],
)
def test_a_wrong_policy_is_told_before_anything_is_done(
    icebergds: Command, lake: Catalog, tmp_path: Path, text: str, told: str
) -> None:
    policy = written(tmp_path, text)
    with pytest.raises(InvalidOptionError) as refused:
        read_policy(policy)
    assert told in str(refused.value)
    assert icebergds("fleet", "maintain", "--policy", policy, "--check").status == 2


def test_a_right_policy_is_checked(icebergds: Command, lake: Catalog, tmp_path: Path) -> None:
    text = '[defaults]\nexpire_older_than = "7d"\nmax_seconds = 60\n[budget]\nmax_seconds = 5.5'
    words = ("fleet", "maintain", "--policy", written(tmp_path, text), "--check", "--json")
    assert icebergds(*words).json["rules"] == 1


def test_a_killed_run_is_finished_by_the_next_one(lake: Catalog, icebergds: Command) -> None:
    tables = [small(lake, f"db.t{number}") for number in range(4)]
    command = [sys.executable, "-c", _RUN, "fleet", "maintain", "lake", "--apply", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert icebergds("fleet", "maintain", "lake", "--apply", "--jobs", 2).status == 0
    for table in tables:
        assert len(table.refresh().inspect.files()) == 1
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(6))
        assert table.verify().is_sound


def test_two_runs_beside_each_other_lose_nothing(lake: Catalog) -> None:
    tables = [small(lake, f"db.t{number}") for number in range(3)]
    command = [sys.executable, "-c", _RUN, "fleet", "maintain", "lake", "--apply", "--json"]
    for process in [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]:
        process.wait()
    for table in tables:
        assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == list(range(6))
        assert table.verify().is_sound


def test_the_example_of_a_policy_is_right(icebergds: Command, lake: Catalog) -> None:
    policy = Path(__file__).parents[2] / "examples" / "fleet" / "policy.toml"
    assert icebergds("fleet", "maintain", "--policy", policy, "--check").status == 0
    found = read_policy(policy)
    sorted_, audit = found.of_table("lake.events.clicks"), found.of_table("lake.audit.log")
    assert sorted_ is not None
    assert audit is not None
    assert (sorted_.strategy, audit.expire_snapshots) == ("sort", False)
    assert found.of_table("lake.scratch.x") is None
