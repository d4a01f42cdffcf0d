"""Renders reports of tables as one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from icebergds.display import counted, printable, size_text, time_text
from icebergds.errors import StorageError
from icebergds.io.local_files import whole_file
from icebergds.operations.maintenance.fleet.charts import Chart, charts_of
from icebergds.operations.maintenance.fleet.commands import command_of, maintain_command
from icebergds.operations.maintenance.fleet.measured import (
    FailedTable,
    Measured,
    TableReport,
    money_text,
)
from icebergds.operations.maintenance.health.layout import Histogram
from icebergds.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    from jinja2 import Environment

DEFAULT_CHARTS = 50
"""Of how many tables charts are drawn, which take about 0.2 s a table."""

_LONGEST_NAME = 300
_MOST_REFS = 200


def require_report_packages() -> None:
    """Raises ImportError, with what to install, if a report cannot be rendered."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"reports need jinja2 and matplotlib ({error}): pip install 'icebergds[report]'"
        ) from error


def render_page(
    title: str,
    reports: Sequence[TableReport],
    failed: Sequence[FailedTable] = (),
    *,
    measured_ms: int,
    charts: int = DEFAULT_CHARTS,
) -> str:
    """Renders tables, the costliest first, and those that failed.

    Args:
        measured_ms: when they were measured, in milliseconds since the epoch.
        charts: of how many tables, the costliest first, charts are drawn.

    Raises:
        ImportError: jinja2 or matplotlib is not installed.
    """
    require_report_packages()
    ordered = sorted(reports, key=lambda each: each.cost.rank, reverse=True)
    most = max((each.cost.weight for each in ordered), default=0)
    pages = [
        _Page.of(report, number, most, with_charts=number < charts)
        for number, report in enumerate(ordered)
    ]
    environment = _environment()
    script = _source(environment, "report.js")
    return environment.get_template("report.html").render(
        title=printable(title, _LONGEST_NAME),
        measured=f"{time_text(measured_ms)[:16].replace('T', ' ')} UTC",
        pages=pages,
        failed=[
            {"table": printable(each.table, _LONGEST_NAME), "error": printable(each.error)}
            for each in failed
        ],
        totals=_totals(ordered, len(failed)),
        has_money=any(each.cost.money for each in ordered),
        has_orphans=any(each.cost.orphan_bytes is not None for each in ordered),
        charted=min(charts, len(pages)),
        is_fleet=len(pages) + len(failed) != 1,
        style=_source(environment, "report.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def write_page(path: str | Path, page: str) -> None:
    """Writes a page to a local file, which is there only if it is whole.

    Raises:
        StorageError: it cannot be written; a file that is there stays as it was.
    """
    try:
        with whole_file(Path(path)) as file:
            file.write(page.encode())
    except OSError as error:
        why = error.strerror or error
        raise StorageError(f"the report {path} cannot be written: {why}") from error


@dataclass(frozen=True, slots=True)
class _Advised:
    """Advice, and the command that follows it."""

    command: str
    reason: str
    gain: str


@dataclass(frozen=True, slots=True)
class _Bin:
    """A range of a histogram; `share` is in percent of the fullest one."""

    name: str
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class _Page:
    """What the template shows of a table; all texts are those of people, and not escaped."""

    report: TableReport
    name: str
    anchor: str
    share: float
    maintain: str
    advised: tuple[_Advised, ...]
    charts: tuple[Chart, ...]
    bins: tuple[tuple[str, tuple[_Bin, ...]], ...]
    refs: tuple[tuple[str, str, str, str], ...]

    @classmethod
    def of(cls, report: TableReport, number: int, most: int, *, with_charts: bool) -> _Page:
        """Prepares a table.

        Args:
            number: that of no other table.
            most: the weight of the costliest table.
        """
        health = report.health
        refs = sorted(health.history.refs, key=lambda each: each.timestamp_ms, reverse=True)
        return cls(
            report=report,
            name=printable(health.table, _LONGEST_NAME),
            anchor=quote(printable(health.table, _LONGEST_NAME), safe=""),
            share=round(100 * report.cost.weight / most, 1) if most > 0 else 0.0,
            maintain=_maintain(health),
            advised=tuple(
                _Advised(command_of(health.table, advice), advice.reason, str(advice.gain))
                for advice in health.advice
            ),
            charts=tuple(charts_of(health, f"t{number}")) if with_charts else (),
            bins=tuple(_histograms(health)),
            refs=tuple(
                (
                    printable(ref.name, _LONGEST_NAME),
                    ref.kind,
                    str(ref.snapshot_id),
                    time_text(ref.timestamp_ms)[:19].replace("T", " "),
                )
                for ref in refs[:_MOST_REFS]
            ),
        )


def _maintain(health: Measured) -> str:
    branch = None if health.branch == MAIN_BRANCH else health.branch
    return maintain_command(health.table, branch)


def _histograms(health: Measured) -> list[tuple[str, tuple[_Bin, ...]]]:
    layout = health.layout
    found = [
        ("Size of a file", layout.sizes, size_text),
        ("Rows of a file", layout.rows, "{:,}".format),
        ("Deletes of a file", layout.deletes, "{:,}".format),
    ]
    return [(title, _bins(histogram, text)) for title, histogram, text in found if histogram.counts]


def _bins(histogram: Histogram, text: Any) -> tuple[_Bin, ...]:
    most = max(histogram.counts)
    ranges = zip(histogram.edges, histogram.edges[1:], histogram.counts, strict=False)
    return tuple(
        _Bin(
            text(low) if low + 1 == high else f"{text(low)} to {text(high)}",
            count,
            round(100 * count / most, 1),
        )
        for low, high, count in ranges
        if count
    )


def _totals(reports: Sequence[TableReport], failed: int) -> list[tuple[str, str]]:
    """Figures of all tables."""
    costs = [each.cost for each in reports]
    orphans = [cost.orphan_bytes for cost in costs if cost.orphan_bytes is not None]
    money = [cost.money for cost in costs if cost.money is not None]
    sick = sum(bool(each.health.advice) for each in reports)
    return [
        ("tables", f"{len(reports) + failed:,}"),
        ("with something to do", f"{sick:,}"),
        *([("failed", f"{failed:,}")] if failed else []),
        ("data", size_text(sum(each.health.files.size_in_bytes for each in reports))),
        ("data files", f"{sum(each.health.files.count for each in reports):,}"),
        ("read for nothing by full reads", size_text(sum(cost.read_bytes for cost in costs))),
        ("files opened for nothing", f"{sum(cost.read_files for cost in costs):,}"),
        ("held by old snapshots", size_text(sum(cost.held_bytes for cost in costs))),
        *([("in orphan files", size_text(sum(orphans)))] if orphans else []),
        *(
            [("a month for nothing", money_text(sum(m.total for m in money), money[0].currency))]
            if money
            else []
        ),
    ]


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "counted": counted,
        "money": money_text,
        "printable": printable,
        "size": size_text,
        "number": "{:,}".format,
        "percent": "{:.1%}".format,
    }
    return environment


def _source(environment: Environment, name: str) -> str:
    loader = environment.loader
    assert loader is not None
    return loader.get_source(environment, name)[0]
