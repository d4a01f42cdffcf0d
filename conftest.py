"""Fixtures of the whole suite; puts the helpers in `spark_tests` on the path."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent / "spark_tests"))
# Spark would otherwise start whatever python3 comes first on the path.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import effort

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Before test modules are imported, for their settings are those of the profile.
effort.start()
if not effort.IS_NIGHTLY:
    # Also of programs that tests run: compiling a query takes longer than running it on a few rows.
    _interpreted = "--conf spark.sql.codegen.factoryMode=NO_CODEGEN pyspark-shell"
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", _interpreted)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One classic Spark session for the whole run."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("icebergds-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random choices of a test of its own, which `ICEBERGDS_SEED` repeats."""
    return random.Random(f"{effort.given_seed()} {request.node.nodeid}")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Gives Hypothesis the seed, as its own option would."""
    if config.option.hypothesis_seed is None and effort.given_seed() is not None:
        config.option.hypothesis_seed = str(effort.given_seed())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out cases of tests that take long, but in the nightly profile."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {
        item for name, test in cases.items() for item in effort.some(test, effort.cases_of(name))
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_report_header() -> str:
    return effort.environment()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Says of a failed test that chose at random how to repeat its choices."""
    report: pytest.TestReport = yield
    if report.failed and _is_random(item):
        report.sections.append(("to repeat the random choices", effort.environment()))
    return report


def _is_random(item: pytest.Item) -> bool:
    test = getattr(item, "obj", None)
    return "rng" in getattr(item, "fixturenames", ()) or hasattr(test, "hypothesis")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what tests have measured; and what was skipped, and why, a line a reason."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in report.user_properties:
                if name == "measured":
                    terminalreporter.write_line(f"{report.location[2]}: {value}")
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(_reason(report.longrepr) for report in skipped)
    if reasons:
        terminalreporter.section(f"{len(skipped)} skipped")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:5} {reason}")


def _reason(longrepr: object) -> str:
    reason = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return reason.removeprefix("Skipped: ")
