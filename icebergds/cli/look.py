"""Commands that show what catalogs have, and what the metadata of a table says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from icebergds.cli.answer import Answer, Exit, Grid
from icebergds.cli.command import command
from icebergds.cli.complete import complete_names
from icebergds.cli.place import Place
from icebergds.errors import InvalidOptionError, NoSuchTableError, UnsupportedFeatureError

if TYPE_CHECKING:
    import pyarrow as pa

    from icebergds.commit.operations import TableState

TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="Name of the table, or its location.", autocompletion=complete_names
    ),
]
Branch = Annotated[str | None, typer.Option("--branch", help="Name of a branch.")]
Where = Annotated[str | None, typer.Option("--where", help='Condition, such as "id > 5".')]
Columns = Annotated[
    str | None, typer.Option("--columns", help="Names of columns, with commas between them.")
]
_PANEL = "Look"


@dataclass(frozen=True, slots=True)
class Version:
    """The snapshot that a command shows or reads; at most one attribute is given."""

    snapshot: Annotated[int | None, typer.Option("--snapshot", help="Id of a snapshot.")] = None
    branch: Branch = None
    tag: Annotated[str | None, typer.Option("--tag", help="Name of a tag.")] = None


def add_look_commands(app: typer.Typer) -> None:
    """Adds the commands to the app."""
    runs: tuple[Callable[..., Answer], ...] = (
        *(list_, describe, schema, spec, uuid, location, properties, snapshots, history, refs),
        *(files, manifests, partitions, catalogs),
    )
    for run in runs:
        command(app, rich_help_panel=_PANEL)(run)
    command(app, "list-refs", hidden=True)(refs)


def list_(
    at: Place,
    namespace: Annotated[
        str | None,
        typer.Argument(
            help="List what it has; without it, the catalog's namespaces.",
            autocompletion=complete_names,
        ),
    ] = None,
) -> Answer:
    """Lists namespaces, tables, views and SQL functions."""
    catalog, name = at.namespace_of(namespace) if namespace else (at.load_catalog(), "")
    found = {"namespaces": _joined(catalog.list_namespaces(name or ()))}
    if name:
        found["tables"] = _joined(catalog.list_tables(name))
        with suppress(UnsupportedFeatureError):
            found["views"] = _joined(catalog.list_views(name))
        with suppress(UnsupportedFeatureError):
            found["functions"] = _joined(catalog.list_functions(name))
    rows = [(kind[:-1], name) for kind, names in found.items() for name in names]
    note = ""
    if not rows:
        where = f"namespace {name}" if name else f"catalog {catalog.name}"
        missing = None if name else _without_warehouse(catalog.name, catalog.properties)
        note = f"{where} is empty" + (f": {missing}" if missing else "")
    return Answer(found, Grid(("kind", "name"), rows, note=note))


def describe(
    at: Place,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="A table or a namespace.", autocompletion=complete_names
        ),
    ],
    entity: Annotated[str, typer.Option(help="any, table or namespace.")] = "any",
) -> Answer:
    """Shows a table's format, columns, layout and contents, or a namespace's properties."""
    from icebergds.spec.json.partition import partition_spec_to_json
    from icebergds.spec.json.schema import schema_to_json
    from icebergds.spec.json.snapshot import snapshot_to_json
    from icebergds.spec.json.sort import sort_order_to_json

    if entity not in ("any", "table", "namespace"):
        raise InvalidOptionError(f"--entity {entity!r}: expected any, table or namespace")
    if entity == "namespace":
        return _namespace(at, table)
    try:
        state = at.address(table).load()
    except (NoSuchTableError, InvalidOptionError):
        # Some catalogs know by the name that it cannot be a table's.
        if entity == "any" and (found := _namespace_if_there(at, table)) is not None:
            return found
        # Its error says more of the catalogs that there are.
        at.load_table(table)
        raise
    metadata = state.metadata
    snapshot = metadata.current_snapshot()
    data = {
        "name": state.name,
        "location": metadata.location,
        "metadata_location": state.metadata_location,
        "format_version": metadata.format_version,
        "table_uuid": metadata.table_uuid,
        "schema": schema_to_json(metadata.schema()),
        "partition_spec": partition_spec_to_json(metadata.spec()),
        "sort_order": sort_order_to_json(metadata.sort_order()),
        "current_snapshot": snapshot and snapshot_to_json(snapshot, metadata.format_version),
        "properties": dict(metadata.properties),
    }
    if labels := state.labels:
        data["labels"] = {
            "object_labels": dict(labels.object_labels),
            "fields": [
                {"field_id": field_id, "labels": dict(each)}
                for field_id, each in labels.field_labels.items()
            ],
        }
    from icebergds.api.display import table_text

    # Its first line is for Python.
    _, _, shown = table_text(state).partition("\n")
    return Answer(data, f"{state.name}\n{shown}")


def schema(at: Place, table: TableName) -> Answer:
    """Shows a table's columns."""
    from icebergds.spec.json.schema import schema_to_json

    found = _state(at, table).metadata.schema()
    rows = [
        (
            str(field.field_id),
            field.name,
            str(field.field_type),
            "required" if field.required else "",
            field.doc or "",
        )
        for field in found.fields
    ]
    grid = Grid(("id", "name", "type", "", "comment"), rows, frozenset({0}))
    return Answer(schema_to_json(found), grid)


def spec(at: Place, table: TableName) -> Answer:
    """Shows how a table is partitioned."""
    from icebergds.spec.json.partition import partition_spec_to_json

    metadata = _state(at, table).metadata
    found = metadata.spec()
    rows = [
        (
            str(field.field_id),
            field.name,
            str(field.transform),
            ", ".join(metadata.schema().find_name(id) or f"#{id}" for id in field.source_ids),
        )
        for field in found.fields
    ]
    grid = Grid(("id", "name", "transform", "column"), rows, frozenset({0}), note="")
    return Answer(partition_spec_to_json(found), grid if rows else "unpartitioned")


def uuid(at: Place, table: TableName) -> Answer:
    """Shows a table's UUID."""
    found = _state(at, table).metadata.table_uuid
    return Answer({"uuid": found}, str(found or "none"))


def location(at: Place, table: TableName) -> Answer:
    """Shows a table's location."""
    found = _state(at, table).metadata.location
    return Answer({"location": found}, found)


def properties(
    at: Place,
    table: TableName,
    name: Annotated[str | None, typer.Argument(help="Only this property.")] = None,
) -> Answer:
    """Shows a table's properties."""
    found = dict(_state(at, table).metadata.properties)
    if name is not None:
        if name not in found:
            raise InvalidOptionError(f"table {table} has no property {name!r}")
        return Answer({name: found[name]}, found[name])
    return Answer(found, Grid(("property", "value"), sorted(found.items())))


def snapshots(at: Place, table: TableName) -> Answer:
    """Lists the snapshots that have not expired, the newest last."""
    from icebergds.spec.json.snapshot import snapshot_to_json
    from icebergds.spec.snapshot import SNAPSHOT_HEADER, SNAPSHOT_NUMBERS, Snapshots

    metadata = _state(at, table).metadata
    found = Snapshots(metadata.snapshots)
    grid = Grid(SNAPSHOT_HEADER, found.rows(found), frozenset(SNAPSHOT_NUMBERS))
    return Answer([snapshot_to_json(each, metadata.format_version) for each in found], grid)


def history(at: Place, table: TableName) -> Answer:
    """Shows which snapshot became the current one, and when."""
    return _inspected(at.load_table(table).inspect.history())


def refs(
    at: Place,
    table: TableName,
    type: Annotated[str | None, typer.Option(help="branch or tag.")] = None,
) -> Answer:
    """Lists branches and tags."""
    if type not in (None, "branch", "tag"):
        raise InvalidOptionError(f"--type {type!r}: expected branch or tag")
    chosen = None if type is None else f"type = '{type.upper()}'"
    return _inspected(at.load_table(table).inspect.refs(filter=chosen))


def files(
    at: Place,
    table: TableName,
    where: Where = None,
    columns: Columns = None,
    *,
    version: Version,
    history: Annotated[bool, typer.Option("--history", help="Of all snapshots.")] = False,
) -> Answer:
    """Lists data and delete files."""
    from icebergds.operations.metadata_tables.kinds import MetadataTable
    from icebergds.operations.metadata_tables.schemas import metadata_table_schema

    loaded = at.load_table(table)
    inspect = loaded.inspect
    shown = columns
    if shown is None:
        there = metadata_table_schema(MetadataTable.FILES, loaded.metadata).schema
        # Tables without partitions lack the column.
        names = {field.name for field in there.fields}
        shown = ",".join(name for name in _FILES if name in names)
    if history:
        if version != Version():
            raise InvalidOptionError("--history is of all snapshots; leave --snapshot and others")
        found = inspect.all_files(filter=where, columns=shown)
    else:
        found = inspect.files(filter=where, columns=shown, **_chosen(version))
    return _inspected(found)


def manifests(
    at: Place,
    table: TableName,
    where: Where = None,
    columns: Columns = None,
    *,
    version: Version,
) -> Answer:
    """Lists manifests."""
    inspect = at.load_table(table).inspect
    shown = columns or _MANIFESTS
    return _inspected(inspect.manifests(filter=where, columns=shown, **_chosen(version)))


def partitions(
    at: Place,
    table: TableName,
    where: Where = None,
    columns: Columns = None,
    *,
    version: Version,
) -> Answer:
    """Lists partitions, with the totals of their files."""
    inspect = at.load_table(table).inspect
    return _inspected(inspect.partitions(filter=where, columns=columns, **_chosen(version)))


def catalogs(at: Place) -> Answer:
    """Lists the configured catalogs, and tries each one; secrets are hidden."""
    from icebergds.catalog.config import catalog_properties, configured_catalogs

    found = []
    for name in [at.catalog] if at.catalog else configured_catalogs():
        error, given = None, dict(at.properties)
        try:
            given = catalog_properties(name, at.properties)
            catalog = Place(name, at.properties).load_catalog()
            if not catalog.list_namespaces():
                error = _without_warehouse(name, given)
        except Exception as failure:
            error = str(failure) or type(failure).__name__
        found.append(
            {
                "name": name,
                "properties": {key: _unless_secret(key, given[key]) for key in sorted(given)},
                "works": error is None,
                "error": error,
            }
        )
    rows = [
        (
            str(each["name"]),
            ", ".join(f"{key}={value}" for key, value in dict(each["properties"]).items()),  # type: ignore[call-overload]
            "works" if each["works"] else str(each["error"]),
        )
        for each in found
    ]
    note = "" if rows else "no catalog is configured, neither in .pyiceberg.yaml nor by variables"
    failed = any(not each["works"] for each in found)
    return Answer(
        found,
        Grid(("catalog", "properties", "state"), rows, note=note),
        Exit.FOUND if failed else Exit.DONE,
    )


def _without_warehouse(name: str, properties: Mapping[str, str]) -> str | None:
    """What to say of an empty catalog of directories if its own does not exist."""
    from icebergds.catalog.filesystem.catalog import FileSystemCatalog
    from icebergds.catalog.loading import load_catalog

    found = load_catalog(name, properties)
    if not isinstance(found, FileSystemCatalog):
        return None
    warehouse = found.io.absolute(found.warehouse)
    if found.io.is_directory(warehouse):
        return None
    return f"its warehouse {warehouse} does not exist; the first table creates it"


_FILES = (
    "content",
    "file_path",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
)
_MANIFESTS = (
    "content,path,length,partition_spec_id,added_snapshot_id,added_data_files_count,"
    "existing_data_files_count,deleted_data_files_count,added_delete_files_count,"
    "existing_delete_files_count,deleted_delete_files_count"
)


def _chosen(version: Version) -> dict[str, Any]:
    """The snapshot as arguments of `Table.inspect`."""
    return {"snapshot_id": version.snapshot, "branch": version.branch, "tag": version.tag}


def _state(at: Place, table: str) -> TableState:
    try:
        return at.address(table).load()
    except NoSuchTableError:
        at.load_table(table)
        raise


def _namespace(at: Place, name: str) -> Answer:
    catalog, namespace = at.namespace_of(name)
    found = catalog.load_namespace_properties(namespace)
    return Answer(found, Grid(("property", "value"), sorted(found.items()), note=""))


def _namespace_if_there(at: Place, name: str) -> Answer | None:
    from icebergds.cli.place import is_location
    from icebergds.errors import IcebergError

    if is_location(name):
        return None
    try:
        return _namespace(at, name)
    except (IcebergError, ImportError):
        return None


def _joined(names: Sequence[Sequence[str]]) -> list[str]:
    from icebergds.expr.names import quote_name

    return [quote_name(name) for name in names]


def _inspected(found: pa.Table) -> Answer:
    from icebergds.cli.values import is_number, json_rows, text_rows

    right = frozenset(at for at, field in enumerate(found.schema) if is_number(field.type))
    grid = Grid(found.column_names, text_rows(found, null=""), right)
    return Answer(json_rows(found), grid)


# Of names of properties whose values others must not see.
_SECRET = ("secret", "token", "password", "credential", "key", "connection-string", "auth")


def _unless_secret(name: str, value: str) -> str:
    from icebergds.io.location_checks import without_secrets

    # Where keys are, is no secret.
    marked = name.lower().replace("keystore", "").replace("keyvault", "")
    return "***" if any(mark in marked for mark in _SECRET) else without_secrets(value)
