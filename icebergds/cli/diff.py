"""The command `diff`: compares two snapshots, branches, tags or tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from icebergds.cli.answer import Answer, Exit, Grid, plain
from icebergds.cli.command import command
from icebergds.cli.complete import complete_names
from icebergds.cli.look import Columns, Where
from icebergds.cli.place import Place, snapshot_id_of
from icebergds.cli.rows import SHOWN, grid_of
from icebergds.display import counted
from icebergds.errors import InvalidOptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from icebergds import Difference, Table
    from icebergds.cli.values import Special

    Sides = tuple[Special, ...]

Side = Annotated[
    str,
    typer.Argument(
        help="A table, or TABLE@REF: a snapshot id, branch or tag of it.",
        autocompletion=complete_names,
    ),
]


def add_diff_command(app: typer.Typer) -> None:
    """Adds the command to the app."""
    command(app, rich_help_panel="Read")(diff)


def diff(
    at: Place,
    before: Side,
    after: Annotated[
        str, typer.Argument(help="Another one; @REF alone is of the same table, and @ its newest.")
    ],
    by: Annotated[
        str | None,
        typer.Option(help="Columns that identify a row; the identifier fields by default."),
    ] = None,
    where: Where = None,
    columns: Columns = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Columns and files only, from metadata.")
    ] = False,
    limit: Annotated[int, typer.Option(min=0, help="Rows of each kind to show.")] = SHOWN,
) -> Answer:
    """Compares two snapshots, branches, tags or tables."""
    from icebergds.cli.values import special_fields

    name, ref = _split(before)
    other_name, other_ref = _split(after)
    if not name:
        raise InvalidOptionError(f"{before}: expected a table before the @, such as db.t{before}")
    table = at.load_table(name)
    other = table if not other_name else at.load_table(other_name)
    scans = [
        each.scan(where, columns, **_snapshot(each, given))
        for each, given in ((table, ref), (other, other_ref))
    ]
    found = scans[0].diff(scans[1], by, with_rows=not summary)
    # Each side has field ids of its own.
    sides = tuple(special_fields(each.schemas().values()) for each in (table, other))
    status = Exit.DONE if found.is_same else Exit.FOUND
    return Answer(_data(found, sides, limit), _parts(found, sides, limit), status)


def _split(side: str) -> tuple[str, str]:
    name, _, ref = side.partition("@")
    if "/" in name:
        # In a location, an `@` before a slash is a part of it.
        name, _, ref = side.rpartition("@")
        return (name, ref) if name and "/" not in ref else (side, "")
    return name, ref


def _snapshot(table: Table, ref: str) -> dict[str, Any]:
    if not ref:
        return {}
    found = table.refs().get(ref)
    if found is not None:
        return {str(found.ref_type): ref}
    if (snapshot_id := snapshot_id_of(ref)) is not None:
        return {"snapshot_id": snapshot_id}
    raise InvalidOptionError(
        f"table {table.name} has no branch or tag {ref!r}; there are {', '.join(table.refs())}"
    )


def _parts(found: Difference, sides: Sides, limit: int) -> list[str | Grid]:
    parts: list[str | Grid] = [str(found)]
    titles = ("removed", "added")
    for title, differing, special in zip(titles, (found.removed, found.added), sides, strict=True):
        if differing is not None and differing.num_rows and limit:
            shown = min(limit, differing.num_rows)
            grid = grid_of(differing.slice(0, shown), special, shown)
            note = _note(title, shown, differing.num_rows)
            parts.append(Grid(grid.header, grid.rows, grid.right, note))
    if found.changed_after is not None and found.changed_after.num_rows and limit:
        rows = [
            [*map(_text, (*cell["key"].values(), cell["column"], cell["before"], cell["after"]))]
            for cell in _cells(found, sides, limit)
        ]
        total = found.changed_after.num_rows
        note = _note("changed", min(limit, total), total)
        parts.append(Grid((*found.by, "column", "before", "after"), rows, note=note))
    return parts


def _note(what: str, shown: int, total: int) -> str:
    return f"{counted(total, 'row')} {what}" + (f", {shown:,} shown" if shown < total else "")


def _text(value: Any) -> str:
    from icebergds.cli.values import as_text

    return "NULL" if value is None else as_text(value)


def _data(found: Difference, sides: Sides, limit: int) -> dict[str, Any]:
    data = {
        "before": found.before,
        "after": found.after,
        "before_at": plain(found.before_at),
        "after_at": plain(found.after_at),
        "columns": plain(found.columns),
        "files": {
            "removed": plain(found.files_removed),
            "added": plain(found.files_added),
            "kept": plain(found.files_kept),
        },
        "by": list(found.by),
        "not_compared": list(found.not_compared),
        "rows": None,
    }
    if found.removed is not None and found.added is not None and found.changed_after is not None:
        data["rows"] = {
            "removed": found.removed.num_rows,
            "added": found.added.num_rows,
            "changed": found.changed_after.num_rows,
        }
        data["removed"] = _first_rows(found.removed, sides[0], limit)
        data["added"] = _first_rows(found.added, sides[1], limit)
        data["changed"] = _cells(found, sides, limit)
    return data


def _cells(found: Difference, sides: Sides, limit: int) -> list[dict[str, Any]]:
    """The values that differ of the first changed rows."""
    before, after = (
        _first_rows(rows, special, limit)
        for rows, special in zip((found.changed_before, found.changed_after), sides, strict=True)
    )
    return [
        {
            "key": {name: new[name] for name in found.by},
            "column": column,
            "before": old[column],
            "after": new[column],
        }
        for at, (old, new) in enumerate(zip(before, after, strict=True))
        for column, mask in found.changed_columns.items()
        if mask[at]
    ]


def _first_rows(rows: pa.Table | None, special: Special, limit: int) -> list[dict[str, Any]]:
    from icebergds.cli.values import json_rows

    return [] if rows is None else json_rows(rows.slice(0, min(limit, rows.num_rows)), special)
