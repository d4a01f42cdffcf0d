"""Commands that keep tables small and fast: dry runs, unless they are to be applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from icebergds.cli.answer import Answer, Exit, Grid, plain
from icebergds.cli.command import command, error_data, error_text
from icebergds.cli.complete import complete_names
from icebergds.cli.look import Branch, TableName
from icebergds.cli.many import OfTable, each_table, note_of, tables_of
from icebergds.cli.place import Place, moment
from icebergds.cli.words import own_words
from icebergds.display import size_text
from icebergds.errors import InvalidOptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icebergds import MaintenanceReport, Table, TableHealth

_PANEL = "Keep"
Target = Annotated[
    str | None,
    typer.Argument(
        metavar="TABLE|NAMESPACE|CATALOG",
        help="By default the whole catalog.",
        autocompletion=complete_names,
    ),
]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without it, only say what would be.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Tables at a time.")]
Bytes = Annotated[int | None, typer.Option("--max-bytes", min=1, help="Rewrite at most so much.")]
Seconds = Annotated[float | None, typer.Option("--max-seconds", help="Begin nothing after it.")]
Age = Annotated[
    str | None,
    typer.Option("--older-than", help="An age such as 7d or 12h, or a time with its offset."),
]
Where = Annotated[str | None, typer.Option("--where", help="Only where rows may match this.")]
Options = Annotated[
    list[str], typer.Option("--option", metavar="KEY=VALUE", help="Option of the action.")
]
_ACTIONS = (
    "convert_equality_deletes",
    "rewrite_data_files",
    "rewrite_position_delete_files",
    "remove_dangling_deletes",
    "rewrite_manifests",
    "expire_snapshots",
)


def add_keep_commands(app: typer.Typer) -> None:
    """Adds the commands to the app."""
    runs = (health, verify, maintain, compact, convert_deletes, expire, orphans)
    for run in (*runs, rewrite_manifests, stats):
        command(app, rich_help_panel=_PANEL)(run)


def health(at: Place, target: Target = None, branch: Branch = None, jobs: Jobs = 1) -> Answer:
    """Shows what a read costs beyond the minimum, and what to do about it."""
    found = each_table(tables_of(at, target), lambda table: table.health(branch), jobs)
    if len(found) == 1:
        one = _result(found[0])
        return Answer(plain(one), str(one), Exit.DONE if one.is_healthy else Exit.FOUND)
    rows = [_health_row(each) for each in found]
    sick = [each for each in found if each.result is not None and not each.result.is_healthy]
    note = note_of(len(found), len(sick), sum(each.result is None for each in found))
    grid = Grid(("table", "files", "size", "rows", "deletes", "advice"), rows, _RIGHT, note)
    return Answer([_data(each) for each in found], grid, _status(found, bool(sick)))


def verify(
    at: Place,
    table: TableName,
    depth: Annotated[
        str, typer.Option(help="metadata, footers (of all files, too) or rows (all of them).")
    ] = "metadata",
    branch: Branch = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Correct what metadata says of files; never rows.")
    ] = False,
) -> Answer:
    """Compares what a table's metadata says with its files, and tells every difference."""
    found = at.load_table(table).verify(depth, repair=repair, branch=branch)
    data = {**plain(found), "is_sound": found.is_sound}
    for finding in data["findings"]:
        finding["remedy"] = own_words(finding["remedy"])
    return Answer(data, own_words(str(found)), Exit.DONE if found.is_sound else Exit.FOUND)


def maintain(
    at: Place,
    target: Target = None,
    branch: Branch = None,
    apply: Apply = False,
    jobs: Jobs = 1,
    max_bytes: Bytes = None,
    max_seconds: Seconds = None,
    expire_older_than: Age = None,
    retain_last: Annotated[int | None, typer.Option(help="Snapshots to keep.")] = None,
    remove_orphan_files: Annotated[
        bool, typer.Option("--remove-orphan-files", help="Remove orphan files, too.")
    ] = False,
) -> Answer:
    """Does what health advises, best first, within a budget."""
    given = {
        "max_bytes": max_bytes,
        "max_seconds": max_seconds,
        "expire_older_than": moment(expire_older_than),
        "retain_last": retain_last,
        "remove_orphan_files": remove_orphan_files,
    }
    return _maintained(at, target, branch, apply, jobs, given)


def compact(
    at: Place,
    table: TableName,
    where: Where = None,
    strategy: Annotated[
        str, typer.Option(help="binpack, sort, zorder or hilbert; all but binpack need Spark.")
    ] = "binpack",
    sort_order: Annotated[
        str | None, typer.Option(help='For sort, such as "region, ts desc"; else the columns.')
    ] = None,
    branch: Branch = None,
    option: Options = [],  # noqa: B006
    apply: Apply = False,
) -> Answer:
    """Rewrites small and large files, and those with many deletes, to files of a good size."""
    if not apply:
        return _planned(at, table, branch, "rewrite_data_files", where, option)

    def run(loaded: Table, spark: SparkSession | None, options: Mapping[str, str]) -> Any:
        return loaded.rewrite_data_files(
            strategy, where, sort_order, branch=branch, options=options, spark=spark
        )

    return _applied(at, table, run, option, needs_spark=strategy != "binpack")


def convert_deletes(
    at: Place,
    table: TableName,
    where: Where = None,
    branch: Branch = None,
    option: Options = [],  # noqa: B006
    apply: Apply = False,
) -> Answer:
    """Converts equality deletes to position deletes."""
    if not apply:
        return _planned(at, table, branch, "convert_equality_deletes", where, option)

    def run(loaded: Table, spark: SparkSession | None, options: Mapping[str, str]) -> Any:
        return loaded.convert_equality_deletes(where, branch=branch, options=options, spark=spark)

    return _applied(at, table, run, option)


def expire(
    at: Place,
    table: TableName,
    older_than: Age = None,
    retain_last: Annotated[int | None, typer.Option(help="Snapshots to keep.")] = None,
    snapshot: Annotated[list[int], typer.Option(help="Id of a snapshot to expire.")] = [],  # noqa: B006
    clean_expired_metadata: Annotated[
        bool, typer.Option("--clean-expired-metadata", help="Remove unused schemas and specs.")
    ] = False,
    apply: Apply = False,
) -> Answer:
    """Removes old snapshots, and the files that only they use."""
    expired = at.load_table(table).expire_snapshots(
        moment(older_than),
        retain_last,
        snapshot or None,
        clean_expired_metadata=clean_expired_metadata,
        dry_run=not apply,
    )
    some = bool(expired.expired_snapshot_ids or expired.expired_refs)
    return Answer(plain(expired), str(expired), Exit.FOUND if some and not apply else Exit.DONE)


def orphans(
    at: Place,
    table: TableName,
    older_than: Age = None,
    location: Annotated[str | None, typer.Option(help="The directory to search.")] = None,
    option: Options = [],  # noqa: B006
    apply: Apply = False,
) -> Answer:
    """Finds files that nothing refers to, and deletes them."""
    found = at.load_table(table).remove_orphan_files(
        moment(older_than), location, dry_run=not apply, options=_options(option)
    )
    some = bool(found.orphan_files_count)
    return Answer(plain(found), str(found), Exit.FOUND if some and not apply else Exit.DONE)


def rewrite_manifests(
    at: Place, table: TableName, branch: Branch = None, apply: Apply = False
) -> Answer:
    """Rewrites manifests, so that planning skips more of them."""
    if not apply:
        return _planned(at, table, branch, "rewrite_manifests", None, [])

    def run(loaded: Table, spark: SparkSession | None, options: Mapping[str, str]) -> Any:
        return loaded.rewrite_manifests(branch=branch)

    return _applied(at, table, run, [])


def stats(
    at: Place,
    table: TableName,
    columns: Annotated[str | None, typer.Option(help="Names of columns, with commas.")] = None,
    apply: Apply = False,
) -> Answer:
    """Computes the number of distinct values of columns, and statistics of partitions."""
    from icebergds.operations.statistics.statistics_commits import refuse_in_clear

    loaded = at.load_table(table)
    refuse_in_clear(loaded.metadata, loaded.name)
    snapshot = loaded.current_snapshot()
    known = {each.snapshot_id for each in loaded.statistics_files()}
    if not apply:
        is_there = snapshot is None or snapshot.snapshot_id in known
        shown = "statistics are up to date" if is_there else "statistics would be computed"
        data = {"table": loaded.name, "is_up_to_date": is_there}
        return Answer(data, shown, Exit.DONE if is_there else Exit.FOUND)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    computed = loaded.compute_table_stats(names)
    of_partitions = loaded.compute_partition_stats() if loaded.spec().fields else None
    data = {"statistics_file": plain(computed), "partition_statistics_file": plain(of_partitions)}
    return Answer(data, "statistics were computed")


_RIGHT = frozenset({1, 2, 3, 4})


def _health_row(found: OfTable[TableHealth]) -> tuple[str, ...]:
    health = found.result
    if health is None:
        return found.name, "", "", "", "", f"failed: {_said(found)}"
    return (
        found.name,
        f"{health.files.count:,}",
        size_text(health.files.size_in_bytes),
        f"{health.files.rows:,}",
        f"{health.deletes.count:,}",
        ", ".join(advice.action for advice in health.advice) or "none",
    )


def _maintained(
    at: Place,
    target: str | None,
    branch: str | None,
    apply: bool,
    jobs: int,
    given: Mapping[str, Any],
) -> Answer:
    from icebergds import MaintenanceError

    def run(table: Table) -> MaintenanceReport:
        try:
            return table.maintain(branch=branch, dry_run=not apply, **given)
        except MaintenanceError as error:
            # What was done stands, and its report says what failed.
            report: MaintenanceReport = error.report
            return report

    found = each_table(tables_of(at, target), run, jobs)
    reports = [each.result for each in found if each.result is not None]
    shown: list[str | Grid] = [
        f"{each.name}: {_said(each)}" if each.result is None else str(each.result) for each in found
    ]
    is_some = any(report.steps for report in reports) and not apply
    status = _status(found, is_some)
    if any(report.failed for report in reports):
        status = Exit.FAILED
    if len(found) == 1:
        return Answer(plain(_result(found[0])), shown, status)
    return Answer([_data(each) for each in found], shown, status)


def _planned(
    at: Place,
    table: str,
    branch: str | None,
    action: str,
    where: str | None,
    option: Sequence[str],
) -> Answer:
    """What one action would do, judging by metadata."""
    if where is not None or option:
        raise InvalidOptionError(
            "--where and --option are of the action itself: give --apply, or leave them out"
        )
    only = {name: name == action for name in _ACTIONS}
    return _maintained(at, table, branch, False, 1, only)


def _applied(
    at: Place,
    table: str,
    run: Callable[[Table, SparkSession | None, Mapping[str, str]], Any],
    option: Sequence[str],
    *,
    needs_spark: bool = False,
) -> Answer:
    from icebergds.cli.spark import quiet_session

    loaded = at.load_table(table)
    options = _options(option)
    session: AbstractContextManager[SparkSession | None] = nullcontext()
    if needs_spark:
        session = quiet_session()
    with session as spark:
        done = run(loaded, spark, options)
    data = plain(done)
    counts = [(name, str(value)) for name, value in data.items() if value not in (0, None, [])]
    return Answer(data, Grid(("result", "value"), counts, note="" if counts else "nothing to do"))


def _options(texts: Sequence[str]) -> dict[str, str]:
    from icebergds.cli.place import properties_of

    return properties_of(list(texts), "--option")


def _result(found: OfTable[Any]) -> Any:
    if found.error is not None:
        raise found.error
    return found.result


def _said(found: OfTable[Any]) -> str:
    return "" if found.error is None else own_words(error_text(found.error))


def _data(found: OfTable[Any]) -> Any:
    if found.error is None:
        return plain(found.result)
    return {"table": found.name, "error": error_data(found.error)}


def _status(found: Sequence[OfTable[Any]], something_to_do: bool) -> Exit:
    if any(each.error is not None for each in found):
        return Exit.FAILED
    return Exit.FOUND if something_to_do else Exit.DONE
