"""Commands that read rows of a table, count them, or say what a read would open."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from icebergds.cli.answer import Answer, Grid, plain, print_answer
from icebergds.cli.command import command
from icebergds.cli.look import Branch, Columns, SnapshotId, TableName, Tag, Where
from icebergds.cli.place import Place
from icebergds.display import counted
from icebergds.errors import InvalidOptionError

if TYPE_CHECKING:
    import pyarrow as pa

_PANEL = "Read"
_SHOWN = 100


class Format(StrEnum):
    """The formats of rows."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    NDJSON = "ndjson"
    ARROW = "arrow"
    PARQUET = "parquet"


def add_row_commands(app: typer.Typer) -> None:
    """Adds the commands to the app."""
    for run in (scan, count, explain):
        command(app, rich_help_panel=_PANEL)(run)


def scan(
    at: Place,
    table: TableName,
    where: Where = None,
    columns: Columns = None,
    limit: Annotated[
        int | None, typer.Option(help=f"At most so many rows; {_SHOWN} of a table, else all.")
    ] = None,
    snapshot: SnapshotId = None,
    branch: Branch = None,
    tag: Tag = None,
    format: Annotated[
        Format | None, typer.Option(help="How rows are written; json with --json, else table.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A file to write, instead of the output.")
    ] = None,
) -> Answer | None:
    """Reads rows: shows the first ones, or writes all as CSV, JSON, Arrow or Parquet."""
    chosen = format or (Format.JSON if at.as_json else Format.TABLE)
    shown = _SHOWN if chosen is Format.TABLE and limit is None else limit
    # One more says whether there are others.
    most = shown + 1 if shown == _SHOWN and limit is None else shown
    scan = at.load_table(table).scan(where, columns, snapshot, branch=branch, tag=tag, limit=most)
    reader = scan.to_arrow_batch_reader()
    if chosen is Format.TABLE:
        if out is not None:
            raise InvalidOptionError("--out needs --format csv, json, ndjson, arrow or parquet")
        print_answer(Answer(None, _grid(reader.read_all(), shown)), as_json=False)
        return None
    if out is None:
        if chosen in (Format.ARROW, Format.PARQUET) and sys.stdout.isatty():
            raise InvalidOptionError(
                f"--format {chosen} is not text: write it to a file with --out"
            )
        sys.stdout.flush()
        _write(reader, chosen, sys.stdout.buffer)
        return None
    # A file that is half written would be taken for a whole one.
    part = out.with_name(f".{out.name}.part")
    try:
        with part.open("xb") as file:
            _write(reader, chosen, file)
        part.replace(out)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return None


def count(
    at: Place,
    table: TableName,
    where: Where = None,
    snapshot: SnapshotId = None,
    branch: Branch = None,
    tag: Tag = None,
) -> Answer:
    """Counts rows, from metadata as far as it can."""
    found = at.load_table(table).scan(where, None, snapshot, branch=branch, tag=tag).count()
    return Answer({"count": found}, str(found))


def explain(
    at: Place,
    table: TableName,
    where: Where = None,
    columns: Columns = None,
    snapshot: SnapshotId = None,
    branch: Branch = None,
    tag: Tag = None,
) -> Answer:
    """Shows what a scan reads, what it skips, and why."""
    scan = at.load_table(table).scan(where, columns, snapshot, branch=branch, tag=tag)
    summary = scan.plan_summary()
    snapshot = summary.snapshot
    data = {
        **plain(replace(summary, snapshot=None)),
        "snapshot_id": None if snapshot is None else snapshot.snapshot_id,
    }
    del data["snapshot"]
    return Answer(data, str(summary))


def _grid(rows: pa.Table, shown: int | None) -> Grid:
    from icebergds.cli.values import is_number, text_rows

    there_are_more = shown is not None and rows.num_rows > shown
    kept = rows.slice(0, shown) if there_are_more else rows
    right = frozenset(at for at, field in enumerate(rows.schema) if is_number(field.type))
    note = counted(kept.num_rows, "row")
    if there_are_more:
        note += "; there are more: ask for them with --limit, or for all with --format"
    return Grid(rows.column_names, text_rows(kept), right, note)


def _write(reader: pa.RecordBatchReader, chosen: Format, file: BinaryIO) -> None:
    """Writes rows batch by batch."""
    import pyarrow as pa

    if chosen in (Format.JSON, Format.NDJSON):
        for text in _json_texts(reader, chosen):
            file.write(text.encode())
    elif chosen is Format.CSV:
        from pyarrow import csv

        from icebergds.cli.values import flat

        schema = flat(pa.RecordBatch.from_pylist([], reader.schema)).schema
        with csv.CSVWriter(file, schema) as writer:
            for batch in reader:
                writer.write_batch(flat(batch))
    elif chosen is Format.ARROW:
        with pa.ipc.new_stream(file, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    else:
        import pyarrow.parquet as pq

        with closing(pq.ParquetWriter(file, reader.schema)) as writer:
            for batch in reader:
                writer.write_batch(batch)
    file.flush()


def _json_texts(reader: pa.RecordBatchReader, chosen: Format) -> Iterator[str]:
    import json

    from icebergds.cli.values import json_rows

    between = "\n" if chosen is Format.NDJSON else ",\n"
    written = False
    if chosen is Format.JSON:
        yield "["
    for batch in reader:
        texts = [json.dumps(row, ensure_ascii=False) for row in json_rows(batch)]
        if texts:
            yield f"{between if written else ''}{between.join(texts)}"
            written = True
    yield "]\n" if chosen is Format.JSON else "\n" if written else ""
