"""Commands that read rows of a table, count them, or say what a read would open."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TypeGuard, cast

import typer

from icebergds.cli.answer import Answer, BegunError, Grid, OutputError, plain
from icebergds.cli.command import command
from icebergds.cli.look import Columns, TableName, Version, Where
from icebergds.cli.place import Place
from icebergds.display import counted
from icebergds.errors import IcebergError, InvalidOptionError
from icebergds.io.local_files import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

    from icebergds import Table, TableScan
    from icebergds.cli.values import Special

_PANEL = "Read"
SHOWN = 100
"""How many rows a table shows unless there is a limit."""


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
        int | None, typer.Option(help=f"At most so many rows; {SHOWN} of a table, else all.")
    ] = None,
    *,
    version: Version,
    format: Annotated[
        Format | None,
        typer.Option(
            metavar="FORMAT",
            help=f"{', '.join(Format)}; by default json with --json, else table.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A file to write, instead of the output.")
    ] = None,
) -> Answer | None:
    """Reads rows: shows the first ones, or writes all as CSV, JSON, Arrow or Parquet."""
    chosen = format or (Format.JSON if at.as_json else Format.TABLE)
    if chosen is Format.TABLE and out is not None:
        raise InvalidOptionError("--out needs --format csv, json, ndjson, arrow or parquet")
    if chosen in (Format.ARROW, Format.PARQUET) and out is None and sys.stdout.isatty():
        raise InvalidOptionError(f"--format {chosen} is not text: write it to a file with --out")
    if out is not None:
        check_out(out)
    shown = SHOWN if chosen is Format.TABLE and limit is None else limit
    # One row more says whether there are others.
    most = SHOWN + 1 if chosen is Format.TABLE and limit is None else limit
    from icebergds.cli.values import special_fields

    loaded = at.load_table(table)
    scan = _scan(loaded, where, columns, version, most)
    # Of all schemas: no other field ever has the id of one.
    special = special_fields(loaded.schemas().values())
    reader = scan.to_arrow_batch_reader()
    if chosen is Format.TABLE:
        return Answer(None, grid_of(reader.read_all(), special, shown))
    if out is None:
        _write_output(reader, chosen, special)
    else:
        rows = _write_file(reader, chosen, special, out)
        return Answer({"rows": rows, "file": str(out)}, f"wrote {counted(rows, 'row')} to {out}")
    return None


def count(
    at: Place,
    table: TableName,
    where: Where = None,
    *,
    version: Version,
) -> Answer:
    """Counts rows, from metadata as far as it can."""
    found = _scan(at.load_table(table), where, None, version).count()
    return Answer({"count": found}, str(found))


def explain(
    at: Place,
    table: TableName,
    where: Where = None,
    columns: Columns = None,
    *,
    version: Version,
) -> Answer:
    """Shows what a scan reads, what it skips, and why."""
    summary = _scan(at.load_table(table), where, columns, version).plan_summary()
    data = plain(replace(summary, snapshot=None))
    data["snapshot_id"] = None if summary.snapshot is None else summary.snapshot.snapshot_id
    del data["snapshot"], data["counts"]["written_with"]
    return Answer(data, str(summary))


def _scan(
    table: Table,
    where: str | None,
    columns: str | None,
    version: Version,
    limit: int | None = None,
) -> TableScan:
    return table.scan(
        where, columns, version.snapshot, branch=version.branch, tag=version.tag, limit=limit
    )


def check_out(out: Path) -> None:
    """Raises InvalidOptionError if no file can be written there."""
    directory = out.resolve().parent
    if out.is_dir() or not directory.is_dir():
        raise InvalidOptionError(f"--out {out}: expected a file in a directory that exists")
    if (out.is_file() or not out.exists()) and not os.access(directory, os.W_OK):
        raise InvalidOptionError(
            f"--out {out}: its directory cannot be written to; choose another one"
        )


def grid_of(rows: pa.Table, special: Special, shown: int | None) -> Grid:
    """Rows for people, the first ones of more rows than are shown."""
    from icebergds.cli.values import is_number, text_rows

    there_are_more = shown is not None and rows.num_rows > shown
    kept = rows.slice(0, shown) if there_are_more else rows
    right = frozenset(at for at, field in enumerate(rows.schema) if is_number(field.type))
    note = counted(kept.num_rows, "row")
    if there_are_more:
        note += "; there are more: ask for them with --limit, or for all with --format"
    return Grid(rows.column_names, text_rows(kept, special), right, note)


@dataclass(slots=True)
class _Output:
    """The standard output, and whether something was written to it."""

    has_begun: bool = False
    closed: bool = False

    def write(self, data: bytes) -> int:
        self.has_begun = True
        return sys.stdout.buffer.write(data)

    def flush(self) -> None:
        sys.stdout.buffer.flush()


def _write_output(reader: pa.RecordBatchReader, chosen: Format, special: Special) -> None:
    """Writes rows to the standard output."""
    sys.stdout.flush()
    output = _Output()
    try:
        _write(reader, chosen, special, cast(BinaryIO, output))
    except BrokenPipeError:
        raise
    except Exception as error:
        if _is_of_output(error):
            raise OutputError(error) from error
        if output.has_begun:
            raise BegunError(error) from error
        raise


def _is_of_output(error: Exception) -> TypeGuard[OSError]:
    """Whether an error of a scan is one of the file that its rows are written to."""
    return isinstance(error, OSError) and not isinstance(error, IcebergError)


def _write_file(reader: pa.RecordBatchReader, chosen: Format, special: Special, out: Path) -> int:
    """Writes rows to a file, which is there only if it is whole; returns their number.

    What is there and is no file, such as `/dev/null` or a pipe, is written to as it is.
    """
    import pyarrow as pa

    rows = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in reader:
            rows += batch.num_rows
            yield batch

    counting = pa.RecordBatchReader.from_batches(reader.schema, batches())
    try:
        with whole_file(out) as file:
            _write(counting, chosen, special, file)
    except BrokenPipeError:
        raise
    except OSError as error:
        if not _is_of_output(error):
            raise
        raise OutputError(error, f"--out {out}") from error
    return rows


def _write(reader: pa.RecordBatchReader, chosen: Format, special: Special, file: BinaryIO) -> None:
    """Writes rows batch by batch."""
    import pyarrow as pa

    from icebergds.cli.values import flat

    match chosen:
        case Format.CSV:
            from pyarrow import csv

            none = pa.RecordBatch.from_pylist([], reader.schema)
            with csv.CSVWriter(file, flat(none).schema) as writer:
                for batch in reader:
                    writer.write_batch(flat(batch, special))
        case Format.ARROW:
            with pa.ipc.new_stream(file, reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
        case Format.PARQUET:
            import pyarrow.parquet as pq

            with closing(pq.ParquetWriter(file, reader.schema)) as writer:
                for batch in reader:
                    writer.write_batch(batch)
        case _:
            for text in _json_texts(reader, special, is_array=chosen is Format.JSON):
                file.write(text.encode())
    file.flush()


def _json_texts(reader: pa.RecordBatchReader, special: Special, *, is_array: bool) -> Iterator[str]:
    from icebergds.cli.values import json_rows

    begin, between, end = ("[", ",\n", "]\n") if is_array else ("", "\n", "\n")
    written = False
    for batch in reader:
        texts = [
            json.dumps(row, ensure_ascii=False, allow_nan=False)
            for row in json_rows(batch, special)
        ]
        if texts:
            yield f"{between if written else begin}{between.join(texts)}"
            written = True
    if written:
        yield end
    elif is_array:
        yield "[]\n"
