"""Commands over all tables of a catalog: what they cost, as text, JSON or one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from icebergds.cli.answer import Answer, Exit, Grid, plain
from icebergds.cli.command import add_common_options, command, error_data, error_text
from icebergds.cli.fleet_maintain import maintain
from icebergds.cli.keep import Target
from icebergds.cli.look import Branch
from icebergds.cli.many import each_table, note_of, tables_of
from icebergds.cli.place import Place
from icebergds.cli.rows import check_out
from icebergds.display import size_text

if TYPE_CHECKING:
    from icebergds import Table
    from icebergds.operations.maintenance.fleet.cost import Prices
    from icebergds.operations.maintenance.fleet.measured import TableReport

# As in `page.py`, which is not imported for the help.
_CHARTS = 50

_Failed: TypeAlias = tuple[str, Exception]


def add_fleet_commands(app: typer.Typer) -> None:
    """Adds the commands to the app."""
    fleet = typer.Typer(help="Looks after all tables of a catalog.", no_args_is_help=True)
    add_common_options(fleet)
    command(fleet)(scan)
    command(fleet)(maintain)
    app.add_typer(fleet, name="fleet", rich_help_panel="Keep")


def scan(
    at: Place,
    target: Target = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write one HTML file.")
    ] = None,
    branch: Branch = None,
    prices: Annotated[
        Path | None, typer.Option("--prices", metavar="FILE", help="Price file, as TOML.")
    ] = None,
    orphans: Annotated[
        bool, typer.Option("--orphans", help="List directories, to find orphan files.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Tables at a time.")] = 4,
    charts: Annotated[
        int, typer.Option("--charts", min=0, help="Of how many tables to draw charts.")
    ] = _CHARTS,
) -> Answer:
    """Measures the health of each table and what it costs, the costliest first."""
    from icebergds.operations.maintenance.fleet.cost import read_prices, report_of

    if out is not None:
        # Before all tables are read.
        from icebergds.operations.maintenance.fleet.page import require_report_packages

        require_report_packages()
        check_out(out)
    known = None if prices is None else read_prices(prices)
    tables = tables_of(at, target)

    def measured(table: Table) -> TableReport:
        def find_orphans() -> Any:
            return table.remove_orphan_files(dry_run=True, options={"stream-results": "true"})

        return report_of(table.health(branch), known, find_orphans if orphans else None)

    found = each_table(tables, measured, jobs)
    reports = sorted(
        (each.result for each in found if each.result is not None),
        key=lambda report: report.cost.rank,
        reverse=True,
    )
    failed = [(each.name, each.error) for each in found if each.error is not None]
    if out is not None:
        _write(out, target or at.load_catalog().name, reports, failed, charts)
    status = Exit.DONE
    if failed:
        status = Exit.FAILED
    elif any(report.health.advice for report in reports):
        status = Exit.FOUND
    return Answer(
        _data(reports, failed, known, out), _shown(reports, failed, known, out, orphans), status
    )


def _write(
    out: Path,
    name: str,
    reports: Sequence[TableReport],
    failed: Sequence[_Failed],
    charts: int,
) -> None:
    from icebergds.operations.maintenance.fleet.measured import FailedTable
    from icebergds.operations.maintenance.fleet.page import render_page, write_page
    from icebergds.spec.values.dates import now_ms

    told = [FailedTable(failing, error_text(error)) for failing, error in failed]
    page = render_page(f"Tables of {name}", reports, told, measured_ms=now_ms(), charts=charts)
    write_page(out, page)


def _data(
    reports: Sequence[TableReport],
    failed: Sequence[_Failed],
    prices: Prices | None,
    out: Path | None,
) -> dict[str, Any]:
    from icebergds.operations.maintenance.fleet.commands import command_of

    return {
        "tables": [
            {
                "table": report.health.table,
                "health": plain(report.health),
                "cost": plain(report.cost),
                "orphan_error": report.orphan_error or None,
                "commands": [
                    command_of(report.health.table, advice) for advice in report.health.advice
                ],
            }
            for report in reports
        ],
        "failed": [{"table": name, "error": error_data(error)} for name, error in failed],
        "prices": plain(prices),
        "report": None if out is None else str(out.absolute()),
    }


def _shown(
    reports: Sequence[TableReport],
    failed: Sequence[_Failed],
    prices: Prices | None,
    out: Path | None,
    orphans: bool,
) -> Grid:
    header = (
        *("table", "files", "size", "read for nothing", "files for nothing", "held by snapshots"),
        *(["orphans"] if orphans else []),
        *(["a month"] if prices else []),
        "advice",
    )
    rows = [_row(report, prices is not None, orphans) for report in reports]
    blank = [""] * (len(header) - 2)
    rows += [(name, *blank, f"failed: {error_text(error)}") for name, error in failed]
    sick = sum(bool(report.health.advice) for report in reports)
    note = note_of(len(rows), sick, len(failed))
    if out is not None:
        note += f"; written: {out}"
    return Grid(header, rows, frozenset(range(1, len(header) - 1)), note)


def _row(report: TableReport, has_prices: bool, orphans: bool) -> tuple[str, ...]:
    health, cost = report.health, report.cost
    found = "not known" if cost.orphan_bytes is None else size_text(cost.orphan_bytes)
    return (
        health.table,
        f"{health.files.count:,}",
        size_text(health.files.size_in_bytes),
        size_text(cost.read_bytes),
        f"{cost.read_files:,}",
        size_text(cost.held_bytes),
        *([found] if orphans else []),
        *([str(cost.money)] if has_prices else []),
        ", ".join(advice.action for advice in health.advice) or "none",
    )
