"""Parses and checks the options of a write (`WriteOptions`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from icebergds.catalog.address import TableAddress
from icebergds.commit.idempotent_writes import IdempotentWrite
from icebergds.errors import InvalidOptionError
from icebergds.expr.nodes import Expr
from icebergds.io.storage_options import STORAGE_OPTIONS, STORAGE_PREFIXES
from icebergds.operations.options.arguments import write_arguments
from icebergds.operations.options.selections import with_selection
from icebergds.operations.options.values import (
    CATALOG_PREFIX,
    OF_WRITES,
    address_of,
    boolean,
    integer,
    is_of_address,
    json_object,
    known_zone,
    not_negative,
    one_of,
    parse,
    positive,
    refuse_session_tables,
    refuse_unknown,
)
from icebergds.operations.write.read_marks import ReadMark
from icebergds.operations.write.row_change_options import (
    RowChangeOptions,
    parse_row_change,
)
from icebergds.spec.manifest import FileFormat
from icebergds.spec.snapshot import MAIN_BRANCH

_SNAPSHOT_PROPERTY = "snapshot-property."
_TABLE_PROPERTY = "table-property."
_SNAPSHOT_PROPERTIES = "snapshot-properties"
_TABLE_PROPERTIES = "table-properties"
_PREFIXES = (*STORAGE_PREFIXES, CATALOG_PREFIX, _SNAPSHOT_PROPERTY, _TABLE_PROPERTY)
_CREATION = ("partition-by", "sort-by", "location", "format-version")
_KNOWN = (
    "path",
    "catalog",
    "branch",
    "time-zone",
    "isolation-level",
    *OF_WRITES,
    "location-map",
    *STORAGE_OPTIONS,
)


@dataclass(frozen=True, slots=True)
class Creation:
    """How to create a table that does not exist yet.

    Attributes:
        partition_by, sort_by: text for `operations.options.partition_text`; empty for none.
        location: None to let the catalog choose.
        format_version: None for 2, or that of the table that is replaced.
    """

    partition_by: str = ""
    sort_by: str = ""
    location: str | None = None
    format_version: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What `df.write.format("icebergpy").option(...).save(path)` asks for.

    Attributes:
        branch: the branch to commit to.
        names_branch: whether an option names it.
        create_branch: whether the branch is created if it does not exist.
        wap_id: stage the snapshot under this id instead of moving the branch.
        overwrite_mode: `static` or `dynamic`.
        overwrite_filter: the rows to replace, as a Spark SQL condition, or as a filter that is not
            bound.
        isolation_level: `none`, `snapshot` or `serializable`; None for the operation's default.
        creation: how to create the table; None if it must exist.
        row_change: the change by key; None for an append or an overwrite.
        idempotent_write: commits the write once, however often it is repeated.
        fast_append: append without merging manifests.
        read_marks: reads that the rows come from, as far as they are known.
    """

    address: TableAddress
    branch: str = MAIN_BRANCH
    names_branch: bool = False
    create_branch: bool = False
    wap_id: str | None = None
    overwrite_mode: str = "static"
    overwrite_filter: str | Expr | None = None
    time_zone: str | None = None
    isolation_level: str | None = None
    validate_from_snapshot_id: int | None = None
    merge_schema: bool = False
    write_format: FileFormat | None = None
    target_file_size: int | None = None
    compression_codec: str | None = None
    compression_level: str | None = None
    shred_variants: bool | None = None
    variant_buffer_size: int | None = None
    fanout: bool | None = None
    distribution_mode: str | None = None
    use_table_distribution: bool = True
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    creation: Creation | None = None
    row_change: RowChangeOptions | None = None
    idempotent_write: IdempotentWrite | None = None
    fast_append: bool = False
    read_marks: tuple[ReadMark, ...] = ()

    @classmethod
    def of(
        cls,
        address: TableAddress,
        options: Mapping[str, str] | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **arguments: str | None,
    ) -> WriteOptions:
        """Parses the options of a write to a known table.

        Args:
            options: further options, as text by name.
            snapshot_properties: entries to add to the snapshot summary.
            arguments: options that are arguments of a method, such as `branch`; with underscores
                for hyphens, None if not given.

        Raises:
            InvalidOptionError: as for `parse_write_options`, or an option is given twice.
        """
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        given = write_arguments(options, snapshot_properties, **named)
        return parse_write_options({**given, "path": address.path}, address)

    def in_zone(self, time_zone: str | None) -> WriteOptions:
        """Sets the time zone, if the options have none."""
        return self if self.time_zone is not None else replace(self, time_zone=time_zone)


def parse_write_options(
    options: Mapping[str, str], address: TableAddress | None = None
) -> WriteOptions:
    """Parses the options of a write.

    Args:
        options: names in any case, values as text, as Spark passes them.
        address: the table; the one that the options name by default.

    Raises:
        InvalidOptionError: a name is unknown (the message suggests the nearest), a value is
            malformed, options contradict each other or the address, or there is no path.
    """
    given: Mapping[str, str] = {name.lower(): value for name, value in options.items()}
    refuse_session_tables(given)
    refuse_unknown(given.keys(), _KNOWN, _PREFIXES, is_write=True)
    path = given.get("path")
    if not path:
        raise InvalidOptionError(
            "no table is named; use save('<table location>'), or option('catalog', '<name>') with "
            "save('<db.table>'). saveAsTable creates tables in Spark's session catalog, which "
            "loses their options; use save, or a temporary view with OPTIONS and INSERT"
        )
    if address is not None and (
        of_address := sorted(filter(is_of_address, given.keys() - {"path"}))
    ):
        raise InvalidOptionError(
            f"{', '.join(of_address)}: options that name a table or its storage cannot be set for "
            "a write to a loaded table; set them in load_table or load_catalog"
        )
    if address is None:
        given = _with_branch(given)
        address = address_of(given, given["path"])
    _refuse_contradictions(given)
    return WriteOptions(
        address=address,
        branch=given.get("branch") or given.get("wap.branch") or MAIN_BRANCH,
        names_branch="branch" in given or "wap.branch" in given,
        create_branch="wap.branch" in given or parse(given, "create-branch", boolean, False),
        wap_id=given.get("wap.id"),
        overwrite_mode=parse(given, "overwrite-mode", one_of("static", "dynamic"), "static"),
        overwrite_filter=given.get("overwrite-filter"),
        time_zone=parse(given, "time-zone", known_zone, None),
        isolation_level=parse(
            given, "isolation-level", one_of("none", "snapshot", "serializable"), None
        ),
        validate_from_snapshot_id=parse(given, "validate-from-snapshot-id", integer, None),
        merge_schema=parse(
            given, "merge-schema", boolean, parse(given, "mergeschema", boolean, False)
        ),
        write_format=parse(given, "write-format", _file_format, None),
        target_file_size=parse(given, "target-file-size-bytes", positive, None),
        compression_codec=given.get("compression-codec"),
        compression_level=given.get("compression-level"),
        shred_variants=parse(given, "shred-variants", boolean, None),
        variant_buffer_size=parse(given, "variant-inference-buffer-size", positive, None),
        fanout=parse(given, "fanout-enabled", boolean, None),
        distribution_mode=parse(given, "distribution-mode", one_of("none", "hash", "range"), None),
        use_table_distribution=parse(given, "use-table-distribution-and-ordering", boolean, True),
        snapshot_properties=_properties(options, _SNAPSHOT_PROPERTY, _SNAPSHOT_PROPERTIES),
        creation=_creation(given, options) if parse(given, "create", boolean, False) else None,
        row_change=parse_row_change(given),
        idempotent_write=_idempotent_write(given),
    )


def _with_branch(given: Mapping[str, str]) -> Mapping[str, str]:
    """The options, with a branch that a name such as `db.events.branch_audit` ends with."""
    selected = with_selection(given)
    others = sorted(selected.keys() - given.keys() - {"branch"})
    if others:
        raise InvalidOptionError(
            f"{given['path']}: only tables and their branches can be written, not what option "
            f"{others[0]!r} selects"
        )
    return selected


def refuse_options_of_writes(options: WriteOptions, verb: str) -> None:
    """Refuses options of appends and overwrites for a statement that changes rows by a condition.

    Args:
        verb: the method of `Table`.

    Raises:
        InvalidOptionError: the statement does not take one of the options.
    """
    given = {
        "create": options.creation is not None,
        "overwrite-filter": options.overwrite_filter is not None,
        "overwrite-mode": options.overwrite_mode == "dynamic",
        "write-operation": options.row_change is not None,
    }
    for name, is_given in given.items():
        if is_given:
            raise InvalidOptionError(
                f"table.{verb} does not take option {name!r}: it changes the rows that match its "
                "condition; leave the option out"
            )


def _refuse_contradictions(given: Mapping[str, str]) -> None:
    pairs = [("branch", "wap.branch"), ("wap.id", "wap.branch"), ("merge-schema", "mergeschema")]
    for one, other in pairs:
        if one in given and other in given:
            raise InvalidOptionError(
                f"options {one!r} and {other!r} contradict each other; give one"
            )
    if given.get("overwrite-mode", "").lower() == "dynamic" and "overwrite-filter" in given:
        raise InvalidOptionError(
            "options 'overwrite-mode' = 'dynamic' and 'overwrite-filter' contradict each other: "
            "one replaces the partitions of the new rows, the other the rows of the filter"
        )
    if given.get("create", "false").lower() != "true":
        for name in given:
            if name in (*_CREATION, _TABLE_PROPERTIES) or name.startswith(_TABLE_PROPERTY):
                raise InvalidOptionError(
                    f"option {name!r} is only used to create a table; add option('create', 'true')"
                )


def _idempotent_write(given: Mapping[str, str]) -> IdempotentWrite | None:
    app_id, version = given.get("txn-app-id"), parse(given, "txn-version", not_negative, None)
    if (app_id is None) != (version is None):
        raise InvalidOptionError(
            "options 'txn-app-id' and 'txn-version' identify a write together; give both"
        )
    if app_id is None or version is None:
        return None
    if "wap.id" in given:
        raise InvalidOptionError(
            "options 'wap.id' and 'txn-app-id' contradict each other: a staged snapshot is not on "
            "a branch, so it is not known whether the write was committed; use 'wap.branch'"
        )
    return IdempotentWrite(app_id, version)


def _creation(given: Mapping[str, str], options: Mapping[str, str]) -> Creation:
    return Creation(
        given.get("partition-by", ""),
        given.get("sort-by", ""),
        given.get("location"),
        parse(given, "format-version", _format_version, None),
        _properties(options, _TABLE_PROPERTY, _TABLE_PROPERTIES),
    )


def _properties(options: Mapping[str, str], prefix: str, option: str) -> dict[str, str]:
    """Properties from options with a prefix, and from a JSON object.

    The options of a DataFrame arrive in lower case; only the object keeps the case of names.
    """
    named = {
        name[len(prefix) :]: value
        for name, value in options.items()
        if name.lower().startswith(prefix)
    }
    given = {name.lower(): value for name, value in options.items()}
    example = json_object('{"Owner": "data team"}')
    listed: dict[str, str] = parse(given, option, example, {}, quoted=False)
    if both := sorted({name.lower() for name in named} & {name.lower() for name in listed}):
        raise InvalidOptionError(
            f"{', '.join(both)}: given both in option {option!r} and as {prefix + both[0]!r}; give "
            "it once"
        )
    return named | listed


def _file_format(text: str) -> FileFormat:
    return FileFormat(one_of("parquet", "orc", "avro")(text))


def _format_version(text: str) -> int:
    return int(one_of("1", "2", "3")(text))
