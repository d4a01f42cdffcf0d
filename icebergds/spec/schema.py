"""Models schemas, with look-up by field id and by name (spec: Schemas and Data Types)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from icebergds.display import block, counted, html_table
from icebergds.spec.read_only import ReadOnlyDict
from icebergds.spec.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    children,
    listed_fields,
    walk,
)


@dataclass(frozen=True)
class Schema:
    """A table's columns at one point in its history.

    `unknown` keeps JSON members that the spec does not define.
    """

    fields: tuple[NestedField, ...]
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    if TYPE_CHECKING:
        # `fields` may be given as a list.
        def __init__(
            self,
            fields: Sequence[NestedField],
            schema_id: int = 0,
            identifier_field_ids: tuple[int, ...] = (),
            unknown: Mapping[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", listed_fields(self.fields, "Schema"))

    def __repr__(self) -> str:
        title = f"Schema(schema_id={self.schema_id}, {counted(len(self.fields), 'column')})"
        return block(title, [" ".join(cells).rstrip() for cells in self._rows()], "column")

    def _repr_html_(self) -> str:
        title = f"Schema {self.schema_id}: {counted(len(self.fields), 'column')}"
        header = ("id", "column", "type", "", "comment")
        comments = [field.doc or "" for field in self.fields]
        rows = [(*cells, text) for cells, text in zip(self._rows(), comments, strict=True)]
        return html_table(title, header, rows, "column")

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                f"{field.field_id}:",
                field.name,
                str(field.field_type),
                " ".join(
                    word
                    for word, holds in (
                        ("required", field.required),
                        ("identifier", field.field_id in self.identifier_field_ids),
                    )
                    if holds
                ),
            )
            for field in self.fields
        ]

    def has_same_columns(self, other: Schema) -> bool:
        """Whether both have the same columns and identifier fields, whatever their own ids."""
        # From behind: most schemas of a table differ in what was added last.
        if len(self.fields) != len(other.fields) or self.fields[::-1] != other.fields[::-1]:
            return False
        return set(self.identifier_field_ids) == set(other.identifier_field_ids)

    def as_struct(self) -> StructType:
        return StructType(self.fields)

    @cached_property
    def fields_by_id(self) -> dict[int, NestedField]:
        """Every field at every level, by its id."""
        return ReadOnlyDict({field.field_id: field for field in walk(self.fields)})

    @cached_property
    def paths_by_id(self) -> dict[int, tuple[str, ...]]:
        """The names from the root to each field, with `element`, `key` or `value` where needed."""
        paths: dict[int, tuple[str, ...]] = {}
        _collect_paths(self.fields, (), paths)
        return ReadOnlyDict(paths)

    @cached_property
    def ids_by_name(self) -> dict[str, int]:
        """Full dotted names to ids."""
        return ReadOnlyDict(
            {".".join(path): field_id for field_id, path in self.paths_by_id.items()}
        )

    @cached_property
    def parents_by_id(self) -> dict[int, int]:
        """The id of the field around each nested field; top-level fields are absent."""
        return ReadOnlyDict(
            {
                child.field_id: field.field_id
                for field in walk(self.fields)
                for child in children(field.field_type)
            }
        )

    def find_field(self, name_or_id: str | int, case_sensitive: bool = True) -> NestedField | None:
        """The field at any level with this id, or with this name as for `find_id`; or None."""
        if isinstance(name_or_id, str):
            found = self.find_id(name_or_id, case_sensitive)
            return None if found is None else self.fields_by_id[found]
        return self.fields_by_id.get(name_or_id)

    def find_name(self, field_id: int) -> str | None:
        """The full dotted name of a field, or None."""
        path = self.paths_by_id.get(field_id)
        return None if path is None else ".".join(path)

    def find_id(self, name: str, case_sensitive: bool = True) -> int | None:
        """The id of the field with this full dotted name, or None.

        Without case sensitivity, an exact match wins, and None is returned for an ambiguous name.
        """
        found = self.ids_by_name.get(name)
        if found is not None or case_sensitive:
            return found
        lowered = name.lower()
        hits = [i for full, i in self.ids_by_name.items() if full.lower() == lowered]
        return hits[0] if len(hits) == 1 else None

    def ancestors(self, field_id: int) -> tuple[int, ...]:
        """Ids of the fields around a field, innermost first."""
        out: list[int] = []
        parent = self.parents_by_id.get(field_id)
        while parent is not None:
            out.append(parent)
            parent = self.parents_by_id.get(parent)
        return tuple(out)

    @property
    def highest_field_id(self) -> int:
        """The greatest id at any level, 0 for an empty schema."""
        return max(self.fields_by_id, default=0)

    def select(self, field_ids: Iterable[int]) -> Schema:
        """The schema with only these fields and their parents.

        A nested field that is named is kept whole. A field inside a list's element or a map's value
        keeps the list or map around it.
        """
        wanted = frozenset(field_ids)
        return replace(self, fields=_select_fields(self.fields, wanted), identifier_field_ids=())

    def __getstate__(self) -> dict[str, Any]:
        return {
            "fields": self.fields,
            "schema_id": self.schema_id,
            "identifier_field_ids": self.identifier_field_ids,
            "unknown": self.unknown,
        }

    def __hash__(self) -> int:
        return hash((self.schema_id, tuple(f.field_id for f in self.fields)))


def _collect_paths(
    fields: tuple[NestedField, ...], prefix: tuple[str, ...], out: dict[int, tuple[str, ...]]
) -> None:
    for nested in fields:
        path = (*prefix, nested.name)
        out[nested.field_id] = path
        _collect_paths(children(nested.field_type), path, out)


def _select_fields(
    fields: tuple[NestedField, ...], wanted: frozenset[int]
) -> tuple[NestedField, ...]:
    selected = ((field, _select_type(field, wanted)) for field in fields)
    return tuple(
        field if kept is field.field_type else replace(field, field_type=kept)
        for field, kept in selected
        if kept is not None
    )


def _select_type(field: NestedField, wanted: frozenset[int]) -> IcebergType | None:
    field_type = field.field_type
    if field.field_id in wanted:
        return field_type
    match field_type:
        case StructType(fields=inner):
            kept = _select_fields(inner, wanted)
            return StructType(kept) if kept else None
        case ListType():
            element = _select_type(field_type.element_field, wanted)
            return None if element is None else replace(field_type, element_type=element)
        case MapType():
            if field_type.key_id in wanted and field_type.value_id not in wanted:
                return field_type
            value = _select_type(field_type.value_field, wanted)
            return None if value is None else replace(field_type, value_type=value)
        case _:
            return None
