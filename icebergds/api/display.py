"""Shows tables and scans as text and HTML, without reading anything."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.commit.operations import TableState
from icebergds.display import WIDTH, html_table, joined, printable, time_text
from icebergds.operations.read.options import is_read_option
from icebergds.spec.partition import PartitionField
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortField
from icebergds.spec.transforms import IdentityTransform

_ROOM = WIDTH - 24


def table_text(state: TableState) -> str:
    """The `repr` of a table."""
    lines = (f"  {name:<12} {printable(text)}" for name, text in _table_rows(state))
    return "\n".join((f"Table({printable(repr(state.name), WIDTH)})", *lines))


def table_html(state: TableState) -> str:
    """A table in a notebook."""
    return html_table(f"Table {state.name}", (), _table_rows(state))


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
    return html_table(f"Scan of {state.name}", (), _given(given, options))


def _given(given: Mapping[str, object], options: Mapping[str, str]) -> list[tuple[str, str]]:
    rows = [(name, repr(value)) for name, value in given.items() if value is not None]
    if options:
        # The value of an option that is refused later may be a secret.
        known = {name: value if is_read_option(name) else "…" for name, value in options.items()}
        rows.append(("options", repr(known)))
    return rows


def _table_rows(state: TableState) -> list[tuple[str, str]]:
    metadata = state.metadata
    schema, snapshot = metadata.schema(), metadata.current_snapshot()
    columns = [f"{field.name} {field.field_type}" for field in schema.fields]
    rows = [
        ("format", f"version {metadata.format_version}"),
        ("columns", f"{len(columns):,}: {joined(columns, 'column', _ROOM)}"),
    ]
    if parts := [_applied(schema, part) for part in metadata.spec().fields]:
        rows.append(("partitions", joined(parts, "field", _ROOM)))
    if keys := [f"{_applied(schema, k)} {k.direction}" for k in metadata.sort_order().fields]:
        rows.append(("sorted", joined(keys, "field", _ROOM)))
    current = "none"
    if snapshot is not None:
        operation = printable(snapshot.operation or "unknown operation", 20)
        current = f"{snapshot.snapshot_id}, {operation}, {time_text(snapshot.timestamp_ms)}"
    return [*rows, ("snapshot", current), ("metadata", state.metadata_location)]


def _applied(schema: Schema, field: PartitionField | SortField) -> str:
    names = [schema.find_name(source_id) or f"#{source_id}" for source_id in field.source_ids]
    column = ", ".join(names)
    is_identity = isinstance(field.transform, IdentityTransform)
    return column if is_identity else f"{field.transform}({column})"
