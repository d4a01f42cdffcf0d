"""Decides by footers which data files Spark's own Parquet reader reads as icebergds does.

Files that icebergds wrote are known by their names. For other files, a limited number of footers is
read; most likely one writer wrote all files of a commit, so these stand for the rest.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from icebergds.errors import IcebergError
from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn, has_ids, with_ids
from icebergds.formats.file_tokens import is_marked
from icebergds.formats.parquet.stored_form import StoredForm, StoredLeaf, stored_form
from icebergds.io.fileio import FileIO
from icebergds.io.near import readers_of
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.manifest import DataFile, ManifestEntry
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.reserved import MAX_TABLE_FIELD_ID
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TypeId,
)

MOST_FOOTERS = 256
"""How many footers a scan reads at most."""

# Texts without a logical type may be any bytes.
_TEXT = r"BYTE_ARRAY (String|Enum|JSON)"
_BYTES = r"BYTE_ARRAY (None|String|Enum|JSON|BSON)|FIXED_LEN_BYTE_ARRAY (None|UUID)"
_INT = (
    r"INT32 (None|Int\(bitWidth=(8|16|32), isSigned=true\)|Int\(bitWidth=(8|16), isSigned=false\))"
)
_LONG = rf"{_INT}|INT32 Int\(bitWidth=32, isSigned=false\)|INT64 (None|Int\(.*, isSigned=true\))"
_TIME = r"INT64 Timestamp\(.*timeUnit=(milli|micro)seconds.*\)"
_DATE = r"INT32 Date"
_STORED = {
    TypeId.BOOLEAN: re.compile(r"BOOLEAN None"),
    TypeId.INT: re.compile(_INT),
    TypeId.LONG: re.compile(_LONG),
    TypeId.FLOAT: re.compile(r"FLOAT None"),
    TypeId.DOUBLE: re.compile(r"(FLOAT|DOUBLE) None"),
    TypeId.DATE: re.compile(_DATE),
    TypeId.TIMESTAMP: re.compile(f"{_TIME}|{_DATE}"),
    TypeId.TIMESTAMPTZ: re.compile(_TIME),
    TypeId.STRING: re.compile(_TEXT),
    TypeId.BINARY: re.compile(_BYTES),
}
"""The physical forms of each type in which Spark reads the same values as icebergds."""
_FIXED = re.compile(r"FIXED_LEN_BYTE_ARRAY (None|UUID)")
_DECIMAL = re.compile(
    r"(?:INT32|INT64|FIXED_LEN_BYTE_ARRAY) Decimal\(precision=(\d+), scale=(\d+)\)"
)


@dataclass(frozen=True, slots=True)
class FormRule:
    """Which files store columns so that Spark reads them as icebergds does.

    Attributes:
        table_schema, name_mapping: assign ids to columns of files without field ids.
    """

    io: FileIO
    table_schema: Schema
    name_mapping: NameMapping | None

    @staticmethod
    def of(plan: ReadPlan) -> FormRule:
        return FormRule(plan.io, plan.table_schema, plan.name_mapping)

    def obstacles(
        self, entries: Sequence[ManifestEntry], fields: Iterable[NestedField]
    ) -> list[str | None]:
        """Why Spark may not read these columns of each file; None if it may.

        Reads some footers, unless they are cached.
        """
        fields = tuple(field for field in fields if field.field_id <= MAX_TABLE_FIELD_ID)
        unknown = [
            at for at, entry in enumerate(entries) if not is_marked(entry.data_file.file_path)
        ]
        found: list[str | None] = [None] * len(entries)
        for at, why in zip(
            unknown, self._of_unknown([entries[at] for at in unknown], fields), strict=True
        ):
            found[at] = why
        return found

    def _of_unknown(
        self, entries: Sequence[ManifestEntry], fields: tuple[NestedField, ...]
    ) -> list[str | None]:
        read = _spread(entries, MOST_FOOTERS)
        files = [entries[at].data_file for at in read]
        with ThreadPoolExecutor(readers_of(self.io, (file.file_path for file in files))) as pool:
            forms = list(pool.map(self._form, files))
        # Many files share one form, which is judged once.
        known: dict[int, str | None] = {}
        for form in forms:
            if form is not None and id(form) not in known:
                known[id(form)] = form_obstacle(form, fields, self.table_schema, self.name_mapping)
        judged = {
            at: "a footer that cannot be read" if form is None else known[id(form)]
            for at, form in zip(read, forms, strict=True)
        }
        if len(judged) == len(entries):
            return [judged[at] for at in range(len(entries))]
        by_commit: dict[int | None, bool] = defaultdict(lambda: False)
        for at, why in judged.items():
            by_commit[entries[at].snapshot_id] |= why is not None
        # Commits without a read footer are judged by all others.
        unlike = any(by_commit.values())
        return [
            judged[at]
            if at in judged
            else _UNREAD
            if by_commit.get(entry.snapshot_id, unlike)
            else None
            for at, entry in enumerate(entries)
        ]

    def _form(self, file: DataFile) -> StoredForm | None:
        try:
            return stored_form(self.io, file.file_path, file.file_size_in_bytes)
        except IcebergError:
            # Reading the file raises the error.
            return None


_UNREAD = "a footer that was not read, and Spark cannot read others"


def form_obstacle(
    form: StoredForm,
    fields: Iterable[NestedField],
    table_schema: Schema,
    name_mapping: NameMapping | None = None,
) -> str | None:
    """Why Spark may not read columns of files with a form; None if it may.

    Args:
        fields: the columns, as in the table.
        table_schema, name_mapping: as for `FormRule`.
    """
    if form.has_old_times:
        return "dates and times of Spark before 3.0"
    columns = form.columns
    if not has_ids(columns):
        if name_mapping is None:
            return "no field ids"
        columns = with_ids(columns, table_schema, name_mapping)
    if sum(len(column.leaves) for column in columns) != len(form.leaves):
        return "columns that Arrow does not read"
    return _of_columns(columns, tuple(fields), form.leaves, _Place(0, 0))


@dataclass(frozen=True, slots=True)
class _Place:
    """What enclosing columns add to the levels and paths of a column's leaves."""

    definition: int
    names: int

    def of(self, column: FileColumn, names: int = 1, required: bool | None = None) -> _Place:
        is_required = column.required if required is None else required
        return _Place(
            self.definition + (not is_required), self.names + names + column.name.count(".")
        )

    def repeated(self) -> _Place:
        return _Place(self.definition + 1, self.names + 1)


def _of_columns(
    columns: Iterable[FileColumn],
    fields: Iterable[NestedField],
    leaves: Sequence[StoredLeaf],
    around: _Place,
) -> str | None:
    by_id: Mapping[int | None, list[FileColumn]] = defaultdict(list)
    for column in columns:
        by_id[column.field_id].append(column)
    for field in fields:
        found = by_id.get(field.field_id, ())
        if len(found) > 1:
            return f"several columns with field id {field.field_id}"
        for column in found:
            why = _of_column(column, field, leaves, around.of(column))
            if why is not None:
                return why
    return None


def _of_column(
    column: FileColumn, field: NestedField, leaves: Sequence[StoredLeaf], place: _Place
) -> str | None:
    match field.field_type, column.kind:
        case StructType(fields=fields), ColumnKind.STRUCT:
            return _of_columns(column.children, fields, leaves, place)
        case ListType() as of_list, ColumnKind.LIST:
            (element,) = column.children
            inner = place.repeated().of(element)
            return _of_part(element, of_list.element_field, leaves, inner)
        case MapType() as of_map, ColumnKind.MAP:
            key, value = column.children
            inner = place.repeated()
            return _of_part(
                key, of_map.key_field, leaves, inner.of(key, required=True)
            ) or _of_part(value, of_map.value_field, leaves, inner.of(value))
        case StructType() | ListType() | MapType(), _:
            return f"column {column.name} is stored as a {column.kind}"
        case _ if column.kind is not ColumnKind.LEAF:
            return f"column {column.name} is stored as a {column.kind}"
    leaf = leaves[column.leaves.start]
    if str(column.arrow_type).startswith("duration"):
        # Only Arrow has durations: Spark reads them as numbers.
        return f"column {leaf.path} has durations"
    if leaf.rare:
        return f"{', '.join(leaf.rare)}, which Spark does not read everywhere"
    if leaf.definition != place.definition or leaf.path.count(".") + 1 != place.names:
        return f"column {leaf.path} is nested in another way than Iceberg's"
    if not _is_stored_alike(leaf, field.field_type):
        return f"column {leaf.path} is stored as {leaf.stored_as.removesuffix(' None')}"
    return None


def _of_part(
    column: FileColumn, field: NestedField, leaves: Sequence[StoredLeaf], place: _Place
) -> str | None:
    if column.field_id != field.field_id:
        return f"column {column.name} lacks field id {field.field_id}"
    return _of_column(column, field, leaves, place)


def _is_stored_alike(leaf: StoredLeaf, field_type: IcebergType) -> bool:
    match field_type:
        case DecimalType(precision=precision, scale=scale):
            stored = _DECIMAL.fullmatch(leaf.stored_as)
            return stored is not None and int(stored[1]) <= precision and int(stored[2]) == scale
        case FixedType(length=length):
            return leaf.length == length and _FIXED.fullmatch(leaf.stored_as) is not None
        case StructType() | ListType() | MapType():
            return False
        case _:
            form = _STORED.get(field_type.type_id)
            return form is not None and form.fullmatch(leaf.stored_as) is not None


def _spread(entries: Sequence[ManifestEntry], most: int) -> list[int]:
    """The indices of at most `most` files: if there are more, some of each commit if possible.

    The result is the same for the same files.
    """
    if len(entries) <= most:
        return list(range(len(entries)))
    first: dict[int | None, int] = {}
    for at, entry in enumerate(entries):
        first.setdefault(entry.snapshot_id, at)
    of_commits = list(first.values())
    chosen = set(_evenly(of_commits, min(len(of_commits), most // 2)))
    chosen |= set(_evenly(range(len(entries)), most - len(chosen)))
    return sorted(chosen)


def _evenly(places: Sequence[int], count: int) -> list[int]:
    return [places[at * (len(places) - 1) // max(count - 1, 1)] for at in range(count)]


# Paths that Spark takes literally: no globs, nothing to normalise, no hidden files. Directories may
# be hidden.
_PLAIN_PATH = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?[A-Za-z0-9 ._/=%+@,~-]*", re.ASCII)
_CHANGED_BY_SPARK = re.compile(r"(?<!:)//|/\.\.?(?:/|$)|/[._][^/]*$|/$")


def is_plain_path(path: str) -> bool:
    """Whether Spark opens exactly this path, without globbing, normalising or hiding it."""
    return bool(_PLAIN_PATH.fullmatch(path)) and not _CHANGED_BY_SPARK.search(path)
