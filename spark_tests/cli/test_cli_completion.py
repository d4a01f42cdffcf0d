"""Shells complete commands, options and names of tables."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from icebergds import Catalog
from icebergds.cli.main import main

Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """What bash is told to complete the last word of a line with."""

    def completed(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setattr(sys, "argv", ["icebergds"])
        monkeypatch.setenv("_ICEBERGDS_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr().out.split()

    return completed


def test_commands_and_options_are_completed(complete: Complete) -> None:
    assert complete("icebergds des") == ["describe"]
    assert complete("icebergds fleet ") == ["scan", "maintain"]
    assert complete("icebergds create t") == ["table"]
    assert complete("icebergds scan t --fo") == ["--format"]
    assert complete("icebergds scan t --format nd") == ["ndjson"]
    assert "--warehouse" in complete("icebergds count t --")
    assert "list-refs" not in complete("icebergds list")


def test_names_of_tables_are_completed(lake: Catalog, complete: Complete) -> None:
    lake.create_table("db.orders", "id int")
    lake.create_table("db.inner.lines", "id int")
    assert complete("icebergds scan db.e") == ["db.events"]
    assert complete("icebergds scan lake.db.o") == ["lake.db.orders"]
    assert complete("icebergds scan db.") == ["db.events", "db.inner", "db.orders"]
    assert complete("icebergds scan db.inn") == ["db.inner.lines"]
    # What begins with it is completed, too: a catalog, and within it its only namespace.
    inside = [f"lake.db.{name}" for name in ("events", "inner", "orders")]
    assert complete("icebergds scan la") == inside
    assert complete("icebergds scan ") == ["db", "lake"]
    for words in ("describe", "diff", "rename", "health", "fleet scan", "append", "drop table"):
        assert complete(f"icebergds {words} db.e") == ["db.events"]


def test_names_are_those_of_the_catalog_that_options_name(
    lake: Catalog, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = lake.properties["warehouse"]
    monkeypatch.delenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE")
    assert complete("icebergds scan db.e") == []
    for line in (
        f"icebergds --warehouse {warehouse} scan db.e",
        f"icebergds scan --warehouse {warehouse} db.e",
        f"icebergds fleet --catalog c scan --warehouse {warehouse} db.e",
    ):
        assert complete(line) == ["db.events"]


def test_what_cannot_be_completed_is_left_to_the_shell(
    lake: Catalog, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert complete("icebergds scan nosuch.") == []
    assert complete("icebergds scan /tmp/") == []
    lake.create_table("db.`odd name`", "id int")
    assert complete("icebergds scan db.") == ["db.events"]
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "thrift://127.0.0.1:9")
    assert complete("icebergds scan db.") == []


_BASH = """
set -e
eval "$(_ICEBERGDS_COMPLETE=source_bash icebergds)"
COMP_WORDS=({words}) COMP_CWORD={at}
_icebergds_completion icebergds
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
_ZSH = """
words=({words}) CURRENT={at}
compdef() {{ :; }}
_arguments() {{ print -r -- "$@"; }}
eval "$(_ICEBERGDS_COMPLETE=source_zsh icebergds)"
_icebergds_completion
"""
_FISH = """
_ICEBERGDS_COMPLETE=source_fish icebergds | source
complete --do-complete '{line}'
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_by_the_script_that_is_installed(
    lake: Catalog, tmp_path: Path, shell: str
) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    command = tmp_path / "icebergds"
    run = "import sys; sys.argv[0] = 'icebergds'; from icebergds.cli.main import main; main()"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{run}" "$@"\n')
    command.chmod(0o755)
    text = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[shell]
    for line, found in (("icebergds desc", "describe"), ("icebergds count db.", "db.events")):
        words = shlex.split(line)
        at = len(words) - (shell == "bash")
        script = text.format(words=" ".join(words), at=at, line=line)
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        ran = subprocess.run(
            [path, "-c", script], capture_output=True, text=True, env=environment, check=True
        )
        assert found in ran.stdout, ran.stderr
