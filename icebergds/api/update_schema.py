"""Changes the columns of a table (`Table.update_schema`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Union

import pyarrow as pa

from icebergds.api.display import update_text
from icebergds.api.table_definition import Columns, default_value, schema_argument, type_argument
from icebergds.errors import InvalidDataError, InvalidOptionError
from icebergds.operations.evolution.schema import SchemaEdit, schema_draft, update_schema
from icebergds.operations.options.arguments import flag_argument, text_argument
from icebergds.operations.outcomes import nothing_committed
from icebergds.spec.evolution import schema_edits
from icebergds.spec.evolution.schema_edits import Path, SchemaDraft
from icebergds.spec.schema import Schema
from icebergds.spec.types import IcebergType, NestedField

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

    from icebergds.api.table_base import TableBase

ColumnPath: TypeAlias = str | Sequence[str]
"""A column's name, with dots before nested fields (`address.city`), or its parts."""

ColumnType: TypeAlias = Union[IcebergType, str, pa.DataType, "DataType"]
"""A type: ours, as text (`bigint`, `struct<a: int>`), Arrow's or Spark's."""


@dataclass(slots=True)
class UpdateSchema:
    """Changes of a table's columns, committed together.

        with table.update_schema() as update:
            update.add_column("address.zip", "string", doc="postal code")
            update.rename_column("amt", "amount")

    Each method sees the changes before it, and raises InvalidOptionError at once if it does not
    fit. The changes are committed at the end of the block, or by `commit`; if the block raises,
    none are. If another commit comes first, they are repeated on the table's new state.

    Columns are named by dotted paths, or by tuples of names if a name has a dot: `("a.b",)`. Inside
    lists and maps the path goes on by `element`, `key` and `value`: `points.element.x`, for which
    `points.x` is short.
    """

    _table: TableBase
    _draft: SchemaDraft
    _edits: list[SchemaEdit] = field(default_factory=list)

    def __repr__(self) -> str:
        return update_text("UpdateSchema", self._table.name, len(self._edits))

    @classmethod
    def of(
        cls, table: TableBase, allow_incompatible_changes: bool, case_sensitive: bool
    ) -> UpdateSchema:
        """Starts an update of the state that this object has."""
        draft = schema_draft(
            table.metadata,
            allow_incompatible=flag_argument(
                "allow_incompatible_changes", allow_incompatible_changes
            ),
            case_sensitive=flag_argument("case_sensitive", case_sensitive),
        )
        return cls(table, draft)

    @property
    def schema(self) -> Schema:
        """The schema with the changes so far."""
        return self._draft.schema

    def add_column(
        self,
        path: ColumnPath,
        field_type: ColumnType,
        doc: str | None = None,
        required: bool = False,
        default_value: Any = None,
    ) -> Self:
        """Adds a column at the end of the table or of the struct that the path names.

        Args:
            path: `name`, or `struct.name` for a field inside a column; a list or map of structs
                may stand for the struct.
            required: only with a default, or if incompatible changes are allowed.
            default_value: the value of existing rows, and what writers store if rows lack the
                column (format version 3; for types that are not nested).
        """
        names = _path(path)
        with self._naming():
            found = type_argument(".".join(names), field_type)
            column = NestedField(
                0,
                names[-1],
                found,
                flag_argument("required", required),
                text_argument("doc", doc),
            )
            value = self._default(names, column, default_value)
        column = replace(column, initial_default=value, write_default=value)
        return self._edit(partial(schema_edits.add_column, path=names, column=column))

    def delete_column(self, path: ColumnPath) -> Self:
        """Deletes a column. Its values stay in files, but no later column has them.

        An identifier field can be deleted if the same update sets others, and the last column if
        the update adds one.
        """
        return self._edit(partial(schema_edits.delete_column, path=_path(path)))

    def rename_column(self, path_from: ColumnPath, new_name: ColumnPath) -> Self:
        """Renames a column; a field inside a column stays there.

        Args:
            new_name: only the last name of the path; `("a.b",)` if it contains a dot.
        """
        names = _path(new_name)
        if len(names) > 1:
            raise InvalidOptionError(
                f"new_name = {new_name!r}: a column stays where it is; give its new last name "
                f"alone, such as {names[-1]!r}, or a tuple such as ({'.'.join(names)!r},) for a "
                "name with a dot"
            )
        edit = partial(schema_edits.rename_column, path=_path(path_from), new_name=names[0])
        return self._edit(edit)

    def update_column(
        self,
        path: ColumnPath,
        field_type: ColumnType | None = None,
        required: bool | None = None,
        doc: str | None = None,
    ) -> Self:
        """Changes a column's type, whether it is required, or its comment; None keeps each.

        Args:
            field_type: a wider type: int to long, float to double, decimals to more digits; date to
                timestamp or timestamp_ns since format version 3.
            required: False lets the column hold nulls; True needs `allow_incompatible_changes`,
                except for a column that this update has added with a default.
            doc: the empty text removes the comment.
        """
        names = _path(path)
        with self._naming():
            schema_edits.find_column(self._draft, names)
            new_type = None if field_type is None else type_argument(".".join(names), field_type)
        if new_type is not None:
            self._edit(partial(schema_edits.update_type, path=names, new_type=new_type))
        if required is not None:
            required = flag_argument("required", required)
            edit = schema_edits.make_required if required else schema_edits.make_optional
            self._edit(partial(edit, path=names))
        if doc is not None:
            text = text_argument("doc", doc) or None
            self._edit(partial(schema_edits.update_doc, path=names, doc=text))
        return self

    def make_column_optional(self, path: ColumnPath) -> Self:
        """Lets a column hold nulls."""
        return self.update_column(path, required=False)

    def set_default(self, path: ColumnPath, value: Any) -> Self:
        """Sets what writers store if rows lack the column (format version 3).

        Existing rows keep their values: `initial-default` never changes.

        Args:
            value: of the column's type; None removes the default.
        """
        names = _path(path)
        with self._naming():
            known = schema_edits.find_column(self._draft, names)
            stored = self._default(names, known, value)
        return self._edit(partial(schema_edits.set_write_default, path=names, value=stored))

    set_default_value = set_default

    def move_first(self, path: ColumnPath) -> Self:
        """Moves a column to the start of the table, or of its struct."""
        return self._edit(partial(schema_edits.move_column, path=_path(path)))

    def move_before(self, path: ColumnPath, before_path: ColumnPath) -> Self:
        """Moves a column before another one of the same struct."""
        return self._edit(
            partial(schema_edits.move_column, path=_path(path), before=_path(before_path))
        )

    def move_after(self, path: ColumnPath, after_path: ColumnPath) -> Self:
        """Moves a column after another one of the same struct."""
        return self._edit(
            partial(schema_edits.move_column, path=_path(path), after=_path(after_path))
        )

    def union_by_name(self, new_schema: Columns) -> Self:
        """Adds the columns of another schema that the table lacks, and widens types to its types.

        Columns are matched by name at every level; new ones are optional, at the end of their
        struct. Existing columns stay required or optional, and keep their comments; defaults are
        not taken over, set them with `set_default`.

        Raises:
            InvalidDataError: two types do not fit each other.
        """
        return self._edit(partial(schema_edits.union_by_name, incoming=schema_argument(new_schema)))

    def set_identifier_fields(self, *fields: ColumnPath) -> Self:
        """Sets the columns that identify a row, the keys of `upsert`; none removes them.

        They must be required, not nested, and not floating-point numbers.
        """
        paths = [_path(one) for one in fields]
        return self._edit(partial(schema_edits.set_identifier_fields, paths=paths))

    def commit(self) -> None:
        """Commits the changes; the table's object then has the new schema.

        Raises:
            InvalidOptionError, InvalidDataError: a change does not fit the table as another commit
                has left it, or partitioning or the sort order needs a column.
            InvalidMetadataError: the schema would break the specification.
            CommitConflictError: concurrent commits won every retry.
            CommitStateUnknownError: it is not known whether the commit succeeded.
            StorageError: the storage or the catalog's database failed; nothing was committed.
        """
        with nothing_committed(self._table.name):
            self._table._state = update_schema(
                self._table._current(),
                self._edits,
                allow_incompatible=self._draft.allow_incompatible,
                case_sensitive=self._draft.case_sensitive,
            )
        self._edits = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()

    def _edit(self, edit: SchemaEdit) -> Self:
        with self._naming():
            self._draft = edit(self._draft)
        self._edits.append(edit)
        return self

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Adds the table's name to errors of a change."""
        try:
            yield
        except (InvalidOptionError, InvalidDataError) as error:
            raise type(error)(f"table {self._table.name}: {error}") from None

    def _default(self, path: Path, column: NestedField, value: Any) -> Any:
        """Converts a default to a value of the column's type."""
        if value is None:
            return None
        schema_edits.check_default(self._draft, path, column, value)
        return default_value(".".join(path), column.field_type, value)


def _path(given: Any) -> Path:
    if isinstance(given, str):
        return tuple(given.split("."))
    if isinstance(given, list | tuple) and given and all(isinstance(name, str) for name in given):
        return tuple(given)
    raise InvalidOptionError(
        f"column {given!r} is of type {type(given).__name__}; expected a name such as 'id' or "
        "'address.city', or a tuple of names"
    )
