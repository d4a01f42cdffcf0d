"""Commands that change catalogs and tables; each says what it does, and asks first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from icebergds.cli.answer import Answer
from icebergds.cli.command import Yes, command, confirm
from icebergds.cli.complete import complete_names
from icebergds.cli.look import Branch, TableName
from icebergds.cli.place import Place, moment, properties_of, snapshot_id_of
from icebergds.display import counted
from icebergds.errors import InvalidOptionError

if TYPE_CHECKING:
    from icebergds import Table
    from icebergds.api.manage_snapshots import ManageSnapshots

_PANEL = "Change"
Name = Annotated[
    str, typer.Argument(help="Its name, such as lake.db.events.", autocompletion=complete_names)
]
Set = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Property that it gets.")
]
Pairs = Annotated[list[str], typer.Argument(metavar="KEY=VALUE", help="Properties.")]
IsNamespace = Annotated[bool, typer.Option("--namespace", help="Of a namespace, not of a table.")]
_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class RefChange:
    """What happens to a branch or tag."""

    begins: Annotated[
        str | None, typer.Argument(metavar="AT", help="Snapshot id, branch or tag it begins at.")
    ] = None
    keep_days: Annotated[
        float | None, typer.Option("--keep-days", help="Days after which it may expire.")
    ] = None
    delete: Annotated[bool, typer.Option("--delete", "-d", help="Delete it.")] = False
    replace: Annotated[bool, typer.Option("--replace", help="Move it if it exists.")] = False
    yes: Yes = False


def add_change_commands(app: typer.Typer) -> None:
    """Adds the commands to the app."""
    create = typer.Typer(help="Creates a table or a namespace.", no_args_is_help=True)
    command(create, "table")(create_table)
    command(create, "namespace")(create_namespace)
    app.add_typer(create, name="create", rich_help_panel=_PANEL)
    drop = typer.Typer(help="Drops a table, a view or a namespace.", no_args_is_help=True)
    command(drop, "table")(drop_table)
    command(drop, "view")(drop_view)
    command(drop, "namespace")(drop_namespace)
    app.add_typer(drop, name="drop", rich_help_panel=_PANEL)
    runs = (
        rename,
        register,
        unregister,
        set_,
        unset,
        branch,
        tag,
        rollback,
        cherry_pick,
        add_files,
        append,
    )
    for each in (*runs, delete, upgrade):
        command(app, rich_help_panel=_PANEL)(each)


def create_table(
    at: Place,
    table: TableName,
    columns: Annotated[str, typer.Argument(help='Such as "id bigint NOT NULL, ts timestamp".')],
    partition: Annotated[str | None, typer.Option(help='Such as "days(ts)".')] = None,
    sort: Annotated[str | None, typer.Option(help='Such as "ts desc".')] = None,
    location: Annotated[str | None, typer.Option(help="Its directory.")] = None,
    identifier: Annotated[str | None, typer.Option(help="Columns that identify a row.")] = None,
    set: Set = [],  # noqa: B006
    yes: Yes = False,
) -> Answer:
    """Creates an empty table."""
    catalog, name = at.catalog_of(table)
    confirm(f"create table {table} ({columns})", yes)
    more = {"partition_spec": partition, "sort_order": sort, "identifier_fields": identifier}
    created = catalog.create_table(
        name,
        columns,
        location,
        properties=properties_of(set, "--set"),
        **{key: value for key, value in more.items() if value is not None},
    )
    return _done("created", table=created.name, location=created.location())


def create_namespace(
    at: Place,
    namespace: Name,
    set: Set = [],  # noqa: B006
    yes: Yes = False,
) -> Answer:
    """Creates a namespace."""
    catalog, name = at.namespace_of(namespace)
    confirm(f"create namespace {name} in catalog {catalog.name}", yes)
    catalog.create_namespace(name, properties_of(set, "--set"))
    return _done("created", namespace=name)


def drop_table(
    at: Place,
    table: TableName,
    purge: Annotated[bool, typer.Option("--purge", help="Delete its files, too.")] = False,
    yes: Yes = False,
) -> Answer:
    """Drops a table; its files stay, unless they are purged."""
    catalog, name = at.catalog_of(table)
    files = "delete all of its files" if purge else "keep its files"
    confirm(f"drop table {name} of catalog {catalog.name}, and {files}", yes)
    (catalog.purge_table if purge else catalog.drop_table)(name)
    return _done("dropped", table=f"{catalog.name}.{name}", purged=purge)


def drop_view(at: Place, view: Name, yes: Yes = False) -> Answer:
    """Drops a view."""
    catalog, name = at.catalog_of(view)
    confirm(f"drop view {name} of catalog {catalog.name}", yes)
    catalog.drop_view(name)
    return _done("dropped", view=f"{catalog.name}.{name}")


def drop_namespace(at: Place, namespace: Name, yes: Yes = False) -> Answer:
    """Drops an empty namespace."""
    catalog, name = at.namespace_of(namespace)
    confirm(f"drop namespace {name} of catalog {catalog.name}", yes)
    catalog.drop_namespace(name)
    return _done("dropped", namespace=name)


def rename(at: Place, table: TableName, new_name: Name, yes: Yes = False) -> Answer:
    """Renames a table; its files stay where they are."""
    catalog, name = at.catalog_of(table)
    other, target = at.catalog_of(new_name)
    if other.name != catalog.name:
        raise InvalidOptionError(
            f"{table} is in catalog {catalog.name}, and {new_name} in catalog {other.name}; "
            "a table stays in its catalog: register it in the other one"
        )
    confirm(f"rename table {name} of catalog {catalog.name} to {target}", yes)
    return _done("renamed", table=catalog.rename_table(name, target).name, before=table)


def register(
    at: Place,
    table: TableName,
    metadata_location: Annotated[str, typer.Argument(help="Location of its metadata file.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a table of this name; its files stay.")
    ] = False,
    view: Annotated[bool, typer.Option("--view", help="Register a view, not a table.")] = False,
    yes: Yes = False,
) -> Answer:
    """Registers an existing table or view in a catalog, by its metadata file."""
    if view and overwrite:
        raise InvalidOptionError("--overwrite replaces tables, not views; drop the view instead")
    catalog, name = at.catalog_of(table)
    kind = "view" if view else "table"
    instead = ", instead of the one there may be," if overwrite else ""
    what = f"{kind} {name} of catalog {catalog.name}"
    confirm(f"register {metadata_location}{instead} as {what}", yes)
    if view:
        found = catalog.register_view(name, metadata_location)
        return _done("registered", view=found.name, location=found.location)
    created = catalog.register_table(name, metadata_location, overwrite)
    return _done("registered", table=created.name, location=created.location())


def unregister(at: Place, table: TableName, yes: Yes = False) -> Answer:
    """Removes a table from a catalog and shows its last metadata file; files stay."""
    catalog, name = at.catalog_of(table)
    confirm(f"unregister table {name} of catalog {catalog.name}; its files stay", yes)
    location = catalog.unregister_table(name)
    found = f"{catalog.name}.{name}"
    return _done("unregistered", table=found, metadata_location=location)


def set_(
    at: Place, name: Name, properties: Pairs, namespace: IsNamespace = False, yes: Yes = False
) -> Answer:
    """Sets properties of a table or a namespace."""
    given = properties_of(properties, "property")
    shown = _text(given)
    if namespace:
        catalog, own_name = at.namespace_of(name)
        confirm(f"set {shown} of namespace {own_name} of catalog {catalog.name}", yes)
        catalog.update_namespace_properties(own_name, updates=given)
        return _done("set", namespace=own_name, properties=given)
    table = at.load_table(name)
    confirm(f"set {shown} of table {table.name}", yes)
    table.set_properties(given)
    return _done("set", table=table.name, properties=given)


def unset(
    at: Place,
    name: Name,
    properties: Annotated[list[str], typer.Argument(metavar="KEY", help="Their names.")],
    namespace: IsNamespace = False,
    yes: Yes = False,
) -> Answer:
    """Removes properties of a table or a namespace."""
    shown = ", ".join(properties)
    if namespace:
        catalog, own_name = at.namespace_of(name)
        confirm(f"remove {shown} from namespace {own_name} of catalog {catalog.name}", yes)
        removed = catalog.update_namespace_properties(own_name, set(properties)).removed
        return _done("removed", namespace=own_name, properties=removed)
    table = at.load_table(name)
    removed = [key for key in properties if key in table.properties]
    confirm(f"remove {shown} from table {table.name}", yes)
    table.remove_properties(*properties)
    return _done("removed", table=table.name, properties=removed)


def branch(
    at: Place,
    table: TableName,
    branch: Annotated[str, typer.Argument(help="Name of the branch.")],
    change: RefChange,
) -> Answer:
    """Creates a branch, moves it or deletes it."""
    return _referenced(at, table, "branch", branch, change)


def tag(
    at: Place,
    table: TableName,
    tag: Annotated[str, typer.Argument(help="Name of the tag.")],
    change: RefChange,
) -> Answer:
    """Creates a tag, moves it or deletes it."""
    return _referenced(at, table, "tag", tag, change)


def rollback(
    at: Place,
    table: TableName,
    snapshot: Annotated[int | None, typer.Option(help="To this ancestor.")] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(help="To the newest before it, such as 2026-01-31T12:00:00Z or 12h ago."),
    ] = None,
    yes: Yes = False,
) -> Answer:
    """Makes an earlier snapshot the current one."""
    if (snapshot is None) == (timestamp is None):
        raise InvalidOptionError("rollback: give either --snapshot or --timestamp")
    loaded = at.load_table(table)
    manage = loaded.manage_snapshots()
    if snapshot is not None:
        manage.rollback_to_snapshot(snapshot)
    else:
        manage.rollback_to_timestamp(moment(timestamp))
    return _managed(loaded, manage, f"roll back to {snapshot or timestamp}", yes)


def cherry_pick(
    at: Place,
    table: TableName,
    snapshot: Annotated[int, typer.Argument(help="Id of the snapshot.")],
    yes: Yes = False,
) -> Answer:
    """Applies the changes of one snapshot to main."""
    loaded = at.load_table(table)
    manage = loaded.manage_snapshots().cherry_pick(snapshot)
    return _managed(loaded, manage, f"apply the changes of snapshot {snapshot}", yes)


def add_files(
    at: Place,
    table: TableName,
    paths: Annotated[list[str], typer.Argument(help="Files and folders.")],
    branch: Branch = None,
    yes: Yes = False,
) -> Answer:
    """Adds existing Parquet, ORC and Avro files in place; from then on they are the table's."""
    loaded = at.load_table(table)
    confirm(f"add {', '.join(paths)} to table {loaded.name}, in place", yes)
    added = loaded.add_files(paths, branch=branch)
    return _done(
        "added",
        table=loaded.name,
        files=added.added_files_count,
        snapshot_id=_newest(loaded, branch),
    )


def append(
    at: Place,
    table: TableName,
    file: Annotated[
        Path, typer.Argument(help="A Parquet, CSV or JSON file.", exists=True, dir_okay=False)
    ],
    branch: Branch = None,
    yes: Yes = False,
) -> Answer:
    """Appends the rows of a file."""
    loaded = at.load_table(table)
    from icebergds.cli.files import read_rows

    rows = read_rows(file, loaded.schema())
    confirm(f"append the rows of {file} to table {loaded.name}", yes)
    counts = loaded.append(rows, branch=branch)
    return _done(
        "appended", table=loaded.name, rows=counts.inserted, snapshot_id=counts.snapshot_id
    )


def delete(
    at: Place,
    table: TableName,
    where: Annotated[str, typer.Option(help='Condition, such as "id > 5".')],
    branch: Branch = None,
    yes: Yes = False,
) -> Answer:
    """Deletes the rows that match a condition."""
    loaded = at.load_table(table)
    count = loaded.scan(where, branch=branch).count()
    confirm(f"delete {counted(count, 'row')} of table {loaded.name} where {where}", yes)
    if not count:
        return _done("deleted", table=loaded.name, rows=0, snapshot_id=None)
    counts = loaded.delete(where, branch=branch)
    return _done("deleted", table=loaded.name, rows=counts.deleted, snapshot_id=counts.snapshot_id)


def upgrade(
    at: Place,
    table: TableName,
    format_version: Annotated[int, typer.Argument(help="2 or 3.")],
    yes: Yes = False,
) -> Answer:
    """Upgrades a table's format version; this cannot be undone."""
    loaded = at.load_table(table)
    before = loaded.metadata.format_version
    confirm(f"upgrade table {loaded.name} from version {before} to {format_version}", yes)
    loaded.upgrade(format_version)
    return _done("upgraded", table=loaded.name, format_version=loaded.metadata.format_version)


def _referenced(at: Place, table: str, kind: str, name: str, change: RefChange) -> Answer:
    """Creates, moves or deletes a branch or tag."""
    loaded = at.load_table(table)
    manage: Any = loaded.manage_snapshots()
    begins, keep_days = change.begins, change.keep_days
    start = begins if begins is None else snapshot_id_of(begins) or begins
    if change.delete:
        if begins is not None or change.replace or keep_days is not None:
            raise InvalidOptionError(
                f"--delete: leave out where the {kind} begins, --replace and --keep-days"
            )
        getattr(manage, f"remove_{kind}")(name)
        _commit(loaded, manage, f"delete {kind} {name}", change.yes)
        return _done("deleted", table=loaded.name, **{kind: name})
    if keep_days is not None and not 1 <= keep_days * _DAY_MS < 2**63:
        raise InvalidOptionError(f"--keep-days {keep_days:g}: expected a number above 0")
    age = None if keep_days is None else round(keep_days * _DAY_MS)
    if change.replace and name in loaded.refs():
        if start is None:
            raise InvalidOptionError(f"--replace: say where {kind} {name} is to be")
        getattr(manage, f"replace_{kind}")(name, start)
        if age is not None:
            manage.set_max_ref_age_ms(name, age)
        what, done = f"move {kind} {name} to {begins}", "moved"
    else:
        getattr(manage, f"create_{kind}")(name, start, max_ref_age_ms=age)
        what, done = f"create {kind} {name} at {begins or 'main'}", "created"
    _commit(loaded, manage, what, change.yes)
    at_snapshot = loaded.refs()[name].snapshot_id
    return _done(done, table=loaded.name, **{kind: name}, snapshot_id=at_snapshot)


def _managed(loaded: Table, manage: ManageSnapshots, what: str, yes: bool) -> Answer:
    _commit(loaded, manage, what, yes)
    return _done("committed", table=loaded.name, snapshot_id=_newest(loaded, None))


def _commit(loaded: Table, manage: ManageSnapshots, what: str, yes: bool) -> None:
    confirm(f"{what}, in table {loaded.name}", yes)
    manage.commit()


def _newest(loaded: Table, branch: str | None) -> int | None:
    snapshot = loaded.snapshot_by_name(branch or "main")
    return None if snapshot is None else snapshot.snapshot_id


def _done(what: str, **of: Any) -> Answer:
    """The answer of a change: `appended: table db.events, rows 3`."""
    shown = ", ".join(
        f"{key.replace('_', ' ')} {_text(value)}" for key, value in of.items() if value is not None
    )
    return Answer({"done": what, **of}, f"{what}: {shown}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        value = [f"{key}={each}" for key, each in value.items()]
    return ", ".join(value) or "none" if isinstance(value, list) else str(value)
