#!/usr/bin/env python3
"""Runs the demo and some tests with the oldest and the newest packages; prints a table.

    make test-matrix
    .ci/matrix.py [SPARK ...]

For each Spark, or those that are named, it takes the oldest Python of the machine that icebergds
supports with the oldest packages, and the newest with the newest; each Python between them gets the
newest Spark and packages. The oldest are those that `pyproject.toml` gives as the least. Packages
are installed in an environment of each row's own, which goes afterwards; `.cache/matrix` keeps the
logs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_LOGS = _ROOT / ".cache/matrix"
_SPARKS = ("4.1", "4.2", "4.3")
# What depends on the versions of packages: rows that Spark, Arrow and pandas hand on, and files.
_TESTS = (
    "spark_tests/commit",
    "spark_tests/expr",
    "spark_tests/api/test_api_rows.py",
    "spark_tests/formats/test_formats_arrow_types.py",
    "spark_tests/spark/test_spark_foreach_batch.py",
    "spark_tests/spark/test_spark_merge_into.py",
    "spark_tests/spark/test_spark_read.py",
    "spark_tests/spark/test_spark_sql_create.py",
    "spark_tests/spark/test_spark_write.py",
)
_SHOWN = ("pyspark", "pandas", "pyarrow", "numpy")


@dataclass(frozen=True, slots=True)
class Row:
    python: str
    spark: str
    is_oldest: bool


def main(*sparks: str) -> None:
    pythons = subprocess.check_output([_ROOT / ".ci/pythons.sh"], text=True).split()
    if not pythons:
        sys.exit("matrix.py: no Python from 3.11 on")
    _LOGS.mkdir(parents=True, exist_ok=True)
    lines = []
    for row in _rows(pythons, sparks or _SPARKS):
        lines.append(_run(row))
        print(lines[-1], flush=True)
    print("\n| Python | " + " | ".join(_SHOWN) + " | demo | tests |")
    print("|---" * (len(_SHOWN) + 3) + "|")
    print("\n".join(lines))
    if any("failed" in line for line in lines):
        sys.exit(f"matrix.py: see the logs in {_LOGS}")


def _rows(pythons: list[str], sparks: tuple[str, ...]) -> Iterator[Row]:
    for spark in sparks:
        yield Row(pythons[0], spark, is_oldest=True)
        yield Row(pythons[-1], spark, is_oldest=False)
    for python in pythons[1:-1]:
        yield Row(python, sparks[-1], is_oldest=False)


def _run(row: Row) -> str:
    """A line of the table."""
    name = f"{Path(row.python).name}-spark{row.spark}-{'oldest' if row.is_oldest else 'newest'}"
    environment = _ROOT / f".venv-matrix-{name}"
    python = str(environment / "bin/python")
    versions = ["?"] * len(_SHOWN)
    demo = tests = "failed"
    try:
        with (_LOGS / f"{name}.log").open("w") as log:
            installed = _logged(log, row.python, "-m", "venv", "--clear", str(environment)) and (
                _logged(log, python, "-m", "pip", "install", "--quiet", *_packages(row))
            )
            if installed:
                versions = _versions(python)
                demo = _result(_logged(log, python, "examples/demo.py", pyspark=python))
                passed = _logged(log, python, "-m", "pytest", "--quiet", *_TESTS, pyspark=python)
                tests = _result(passed)
        said = re.findall(r"(\d+ passed)", (_LOGS / f"{name}.log").read_text())
        tests = said[-1] if tests == "passed" and said else tests
    finally:
        shutil.rmtree(environment, ignore_errors=True)
    minor = re.sub(r"^python", "", Path(row.python).name)
    return f"| {minor} | {' | '.join(versions)} | {demo} | {tests} |"


def _packages(row: Row) -> list[str]:
    """Arguments of `pip install`."""
    others = ["duckdb", "pytest", "pytest-rerunfailures", "hypothesis"]
    spark = f"pyspark[sql]=={row.spark}.*"
    if not row.is_oldest:
        return ["--upgrade", "--editable", ".[sql-sqlite]", spark, "pandas", *others]
    needed = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    least = (re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", each) for each in needed)
    versions = {each[1]: each[2] for each in least if each is not None}
    versions |= {"pandas": "2.2", "pyspark": row.spark}
    exact = [f"{package}=={version}.*" for package, version in versions.items()]
    return ["--editable", ".[sql-sqlite]", spark, *exact, *others]


def _versions(python: str) -> list[str]:
    code = f"import importlib.metadata as m; print(*map(m.version, {_SHOWN}))"
    return subprocess.check_output([python, "-c", code], text=True).split()


def _logged(log: object, *command: str, pyspark: str | None = None) -> bool:
    given = {} if pyspark is None else {"PYSPARK_PYTHON": pyspark}
    finished = subprocess.run(
        command,
        cwd=_ROOT,
        env={**os.environ, **given},
        stdout=log,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
        check=False,
    )
    return bool(finished.returncode == 0)


def _result(is_passed: bool) -> str:
    return "passed" if is_passed else "failed"


if __name__ == "__main__":
    main(*sys.argv[1:])
