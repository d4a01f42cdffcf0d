"""Changes the partitioning and the sort order of a table (`update_spec`, `update_sort_order`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from icebergds.api.display import update_text
from icebergds.errors import InvalidOptionError
from icebergds.operations.evolution.layout import (
    SortEdit,
    SpecEdit,
    replace_sort_order,
    spec_draft,
    update_spec,
)
from icebergds.operations.options.arguments import text_argument
from icebergds.operations.options.partition_text import parse_sort_by, parse_term
from icebergds.operations.outcomes import nothing_committed
from icebergds.spec.evolution import spec_edits
from icebergds.spec.evolution.spec_edits import SpecDraft
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import (
    MAX_WIDTH,
    Transform,
    UnknownTransform,
    parse_transform,
    width_of,
)

if TYPE_CHECKING:
    from icebergds.api.table_base import TableBase


@dataclass(slots=True)
class UpdateSpec:
    """Changes of how new files are partitioned, committed together.

        with table.update_spec() as update:
            update.add_field("days(ts)")
            update.add_field("id", "bucket[16]", "shard")
            update.remove_field("country")

    Existing files keep their partitions, and reads prune by both. Each method raises
    InvalidOptionError at once if it does not fit. The changes are committed at the end of the
    block, or by `commit`; if another commit comes first, they are repeated on the table's new
    state.
    """

    _table: TableBase
    _draft: SpecDraft
    _edits: list[SpecEdit] = field(default_factory=list)

    def __repr__(self) -> str:
        return update_text("UpdateSpec", self._table.name, len(self._edits))

    @classmethod
    def of(cls, table: TableBase) -> UpdateSpec:
        """Starts an update of the state that this object has."""
        return cls(table, spec_draft(table.metadata))

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec with the changes so far; new fields have no ids yet."""
        return PartitionSpec(0, self._draft.fields)

    def add_field(
        self,
        source_column_name: str,
        transform: Transform | str | None = None,
        partition_field_name: str | None = None,
    ) -> Self:
        """Adds a partition field.

        Args:
            source_column_name: a column, or a term such as `days(ts)` or `bucket(16, id) as shard`.
            transform: of the column, such as `DayTransform()` or `"bucket[16]"`; identity by
                default.
            partition_field_name: `ts_day`, `id_bucket_16` and so on by default; a field that the
                table had before gets its earlier name.
        """
        return self._edit(
            partial(
                _add_field,
                term=_text("source_column_name", source_column_name),
                transform=_transform(transform),
                name=text_argument("partition_field_name", partition_field_name),
            )
        )

    def add_identity(self, source_column_name: str) -> Self:
        """Adds a partition field with the values of a column."""
        return self.add_field(source_column_name, "identity")

    def remove_field(self, name: str) -> Self:
        """Removes a partition field, by its name or as a term such as `days(ts)`.

        In format version 1 it stays, and its values are null from now on.
        """
        return self._edit(partial(_remove_field, name=_text("name", name)))

    def rename_field(self, name: str, new_name: str) -> Self:
        """Renames a partition field."""
        return self._edit(
            partial(_rename_field, name=_text("name", name), new_name=_text("new_name", new_name))
        )

    def commit(self) -> None:
        """Commits the changes; the table's object then has the new spec.

        Raises:
            InvalidOptionError: a change does not fit the table as another commit has left it.
            InvalidMetadataError: the spec would break the specification.
            CommitConflictError: concurrent commits won every retry.
            CommitStateUnknownError: it is not known whether the commit succeeded.
            StorageError: the storage or the catalog's database failed; nothing was committed.
        """
        with nothing_committed(self._table.name):
            self._table._state = update_spec(self._table._current(), self._edits)
        self._edits = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()

    def _edit(self, edit: SpecEdit) -> Self:
        try:
            self._draft = edit(self._draft, self._table.schema())
        except InvalidOptionError as error:
            raise InvalidOptionError(f"table {self._table.name}: {error}") from None
        self._edits.append(edit)
        return self


@dataclass(slots=True)
class UpdateSortOrder:
    """A new sort order for the files of a table, which replaces the current one.

        with table.update_sort_order() as update:
            update.desc("ts").asc("bucket(16, id)")

    Without any column, new files are not sorted. The order is committed at the end of the block, or
    by `commit`.
    """

    _table: TableBase
    _edits: list[SortEdit] = field(default_factory=list)

    def __repr__(self) -> str:
        return update_text("UpdateSortOrder", self._table.name, len(self._edits))

    def asc(
        self,
        source_column_name: str,
        transform: Transform | str | None = None,
        null_order: NullOrder | str | None = None,
    ) -> Self:
        """Sorts by a column next, ascending; nulls come first by default.

        Args:
            source_column_name: a column, or a term such as `bucket(16, id)`.
            transform: of the column; identity by default.
            null_order: `nulls-first` or `nulls-last`.
        """
        return self._sort(SortDirection.ASC, source_column_name, transform, null_order)

    def desc(
        self,
        source_column_name: str,
        transform: Transform | str | None = None,
        null_order: NullOrder | str | None = None,
    ) -> Self:
        """Sorts by a column next, descending; nulls come last by default."""
        return self._sort(SortDirection.DESC, source_column_name, transform, null_order)

    def by(self, terms: str) -> Self:
        """Sorts by terms as text next: `ts desc nulls last, bucket(16, id)`."""
        return self._edit(partial(_sort_by_text, terms=_text("terms", terms)))

    def commit(self) -> None:
        """Commits the order; the table's object then has it. Errors are those of `UpdateSpec`."""
        with nothing_committed(self._table.name):
            self._table._state = replace_sort_order(self._table._current(), self._edits)
        self._edits = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()

    @property
    def sort_order(self) -> SortOrder:
        """The order so far."""
        fields: tuple[SortField, ...] = ()
        for edit in self._edits:
            fields = edit(fields, self._table.schema())
        return SortOrder(1 if fields else 0, fields)

    def _sort(self, direction: SortDirection, column: Any, transform: Any, null_order: Any) -> Self:
        nulls = _null_order(null_order)
        if nulls is None:
            first = direction is SortDirection.ASC
            nulls = NullOrder.NULLS_FIRST if first else NullOrder.NULLS_LAST
        return self._edit(
            partial(
                _sort_by,
                term=_text("source_column_name", column),
                transform=_transform(transform),
                direction=direction,
                nulls=nulls,
            )
        )

    def _edit(self, edit: SortEdit) -> Self:
        try:
            edit((), self._table.schema())
        except InvalidOptionError as error:
            raise InvalidOptionError(f"table {self._table.name}: {error}") from None
        self._edits.append(edit)
        return self


def _add_field(
    draft: SpecDraft, schema: Schema, *, term: str, transform: Transform | None, name: str | None
) -> SpecDraft:
    source_id, parsed, alias = parse_term(term, schema, transform)
    return spec_edits.add_partition_field(draft, schema, source_id, parsed, name or alias)


def _remove_field(draft: SpecDraft, schema: Schema, *, name: str) -> SpecDraft:
    if "(" in name and not any(part.name == name for part in draft.fields):
        source_id, transform, _ = parse_term(name, schema, None)
        wanted = ((source_id,), transform)
        found = [f.name for f in draft.fields if (f.source_ids, f.transform) == wanted]
        name = found[0] if found else name
    return spec_edits.remove_partition_field(draft, name)


def _rename_field(draft: SpecDraft, schema: Schema, *, name: str, new_name: str) -> SpecDraft:
    return spec_edits.rename_partition_field(draft, name, new_name)


def _sort_by(
    fields: tuple[SortField, ...],
    schema: Schema,
    *,
    term: str,
    transform: Transform | None,
    direction: SortDirection,
    nulls: NullOrder,
) -> tuple[SortField, ...]:
    source_id, parsed, _ = parse_term(term, schema, transform)
    return (*fields, SortField((source_id,), parsed, direction, nulls))


def _sort_by_text(
    fields: tuple[SortField, ...], schema: Schema, *, terms: str
) -> tuple[SortField, ...]:
    return (*fields, *parse_sort_by(terms, schema, "terms").fields)


def _text(name: str, given: Any) -> str:
    text = text_argument(name, given)
    if not text:
        raise InvalidOptionError(f"{name} = {given!r}: expected a text that is not empty")
    return text


def _transform(given: Any) -> Transform | None:
    """A transform, given as ours, as the specification's text or as PyIceberg's; None for None."""
    if given is None:
        return None
    if isinstance(given, Transform):
        parsed: Transform = given
    else:
        parsed = parse_transform(str(given).strip().lower())
        if isinstance(parsed, UnknownTransform):
            raise InvalidOptionError(
                f"transform = {given!r}: expected identity, year, month, day, hour, void, "
                "bucket[n], truncate[width], or a transform of icebergds.types"
            )
    if not 1 <= width_of(parsed) <= MAX_WIDTH:
        raise InvalidOptionError(
            f"transform = {given!r}: expected a number from 1 to {MAX_WIDTH}, such as bucket[16]"
        )
    return parsed


def _null_order(given: Any) -> NullOrder | None:
    if given is None or isinstance(given, NullOrder):
        return given
    text = str(getattr(given, "value", given)).lower().replace("_", "-").replace(" ", "-")
    if text not in set(NullOrder):
        raise InvalidOptionError(
            f"null_order = {given!r}: expected {' or '.join(repr(str(o)) for o in NullOrder)}"
        )
    return NullOrder(text)
