"""Shows tables and scans as text and HTML, without I/O."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from icebergds.commit.operations import TableState
from icebergds.display import (
    MOST_ROWS,
    WIDTH,
    counted,
    html_table,
    joined,
    printable,
    size_text,
    time_text,
)
from icebergds.operations.read.options import is_read_option
from icebergds.spec.labels import Labels
from icebergds.spec.partition import PartitionField
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.sort import SortField
from icebergds.spec.table_properties import ENCRYPTION_KEY_ID
from icebergds.spec.transforms import IdentityTransform

_ROOM = WIDTH - 24


def table_text(state: TableState) -> str:
    """The `repr` of a table."""
    lines = (f"  {name:<12} {printable(text)}" for name, text in _table_rows(state))
    return "\n".join((f"Table({printable(repr(state.name), WIDTH)})", *lines))


def table_html(state: TableState) -> str:
    """A table in a notebook."""
    return html_table(f"Table {state.name}", (), _table_rows(state))


def update_text(kind: str, table: str, waiting: int) -> str:
    """The `repr` of changes of a table, with the number of uncommitted ones."""
    return f"{kind}({printable(repr(table), WIDTH)}, {counted(waiting, 'change')} not committed)"


def scan_text(state: TableState, given: Mapping[str, object], options: Mapping[str, str]) -> str:
    """The `repr` of a scan.

    Args:
        given: the arguments of the scan by name; None if not given.
    """
    shown = [printable(repr(state.name), WIDTH)]
    shown += [f"{name}={printable(text, WIDTH)}" for name, text in _given(given, options)]
    return f"TableScan({', '.join(shown)})"


def scan_html(state: TableState, given: Mapping[str, object], options: Mapping[str, str]) -> str:
    """A scan in a notebook; arguments are those of `scan_text`."""
    # The text of a filter may have several lines.
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    rows = [(name, texts.get(name, text)) for name, text in _given(given, options)]
    return html_table(f"Scan of {state.name}", (), rows)


_TITLE = b"icebergds.title"


def shown_in_notebooks(table: pa.Table, title: str) -> pa.Table:
    """Makes an Arrow table show as HTML in a notebook; other Arrow tables show as before.

    The title is in the schema's metadata, so that selections from the table show as HTML, too.
    """
    # A process that has not imported IPython is not a notebook.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return table
    formatter = shell.display_formatter.formatters["text/html"]
    if pa.Table not in formatter.type_printers:
        formatter.for_type(pa.Table, arrow_html)
    metadata = {**(table.schema.metadata or {}), _TITLE: title.encode(errors="replace")}
    return table.replace_schema_metadata(metadata)


def arrow_html(table: pa.Table) -> str | None:
    """An Arrow table from `shown_in_notebooks` as HTML; None for tables that show as text."""
    title = (table.schema.metadata or {}).get(_TITLE)
    if title is None:
        return None
    try:
        columns = [map(_cell, each.to_pylist()) for each in table.slice(0, MOST_ROWS).columns]
    except (ValueError, OverflowError):
        # Bounds may be times that Python cannot represent.
        return None
    count, rows = table.num_rows, list(zip(*columns, strict=True))
    name = f"{title.decode()}: {counted(count, 'row')}"
    return html_table(name, table.column_names, rows, count=count)


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case datetime():
            return value.isoformat(sep=" ")
        case dict():
            return "\n".join(f"{name}: {_inside(part)}" for name, part in value.items())
        case [(_, _), *_]:
            return "\n".join(f"{key}: {_inside(part)}" for key, part in value)
        case list():
            return "\n".join(map(_inside, value))
    return str(value)


def _inside(value: Any) -> str:
    """A value inside another one, in one line."""
    return ", ".join(_cell(value).splitlines())


def _given(given: Mapping[str, object], options: Mapping[str, str]) -> list[tuple[str, str]]:
    rows = [(name, repr(value)) for name, value in given.items() if value is not None]
    if options:
        # An unknown option is refused later, but its value may be a secret.
        known = {name: value if is_read_option(name) else "…" for name, value in options.items()}
        rows.append(("options", repr(known)))
    return rows


def _table_rows(state: TableState) -> list[tuple[str, str]]:
    metadata = state.metadata
    schema, snapshot = metadata.schema(), metadata.current_snapshot()
    columns = [f"{field.name} {field.field_type}" for field in schema.fields]
    rows = [("format", f"version {metadata.format_version}")]
    if key_id := ENCRYPTION_KEY_ID.of(metadata.properties):
        rows.append(("encrypted", f"master key {printable(key_id, _ROOM)}"))
    rows.append(("columns", f"{len(columns):,}: {joined(columns, 'column', _ROOM)}"))
    if parts := [_applied(schema, part) for part in metadata.spec().fields]:
        rows.append(("partitions", joined(parts, "field", _ROOM)))
    if keys := [f"{_applied(schema, k)} {k.direction}" for k in metadata.sort_order().fields]:
        rows.append(("sorted", joined(keys, "field", _ROOM)))
    current = "none"
    if snapshot is not None:
        operation = printable(snapshot.operation or "unknown operation", 20)
        current = f"{snapshot.snapshot_id}, {operation}, {time_text(snapshot.timestamp_ms)}"
    rows += [("snapshot", current), *_contents(snapshot)]
    rows += label_rows(state.labels, schema)
    return [*rows, ("location", metadata.location), ("metadata", state.metadata_location)]


def label_rows(labels: Labels, schema: Schema) -> list[tuple[str, str]]:
    """The labels of a table or view and of its columns, if there are any."""
    if not labels:
        return []
    texts = [f"{key} = {value}" for key, value in labels.object_labels.items()]
    for field_id, given in labels.field_labels.items():
        column = schema.find_name(field_id) or f"#{field_id}"
        texts += (f"{column}: {key} = {value}" for key, value in given.items())
    return [("labels", joined(texts, "label", _ROOM))]


def _contents(snapshot: Snapshot | None) -> Iterator[tuple[str, str]]:
    """Rows and files, as far as the snapshot's summary has them."""
    if snapshot is None:
        yield "rows", "0"
        return
    rows, files, deletes, size = (
        _total(snapshot, name) for name in ("records", "data-files", "delete-files", "files-size")
    )
    if rows is not None:
        yield "rows", f"{rows:,}" if deletes == 0 else f"{rows:,} before deletes"
    if files is not None:
        texts = [counted(files, "data file")]
        if deletes:
            texts.append(counted(deletes, "delete file"))
        size_shown = "" if size is None else f": {size_text(size)}"
        yield "files", f"{', '.join(texts)}{size_shown}"


def _total(snapshot: Snapshot, name: str) -> int | None:
    text = snapshot.summary.get(f"total-{name}", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _applied(schema: Schema, field: PartitionField | SortField) -> str:
    names = [schema.find_name(source_id) or f"#{source_id}" for source_id in field.source_ids]
    column = ", ".join(names)
    is_identity = isinstance(field.transform, IdentityTransform)
    return column if is_identity else f"{field.transform}({column})"
