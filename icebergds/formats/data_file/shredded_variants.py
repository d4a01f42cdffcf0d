"""Plans how a variant is rebuilt from its shredded columns (Parquet variant shredding)."""

from __future__ import annotations

from collections.abc import Iterable, Set as AbstractSet
from typing import Protocol, Self

import pyarrow as pa

from icebergds.errors import CorruptFileError, UnsupportedFeatureError
from icebergds.formats.arrow.types import is_binary
from icebergds.formats.arrow.variant.scalars import encoder_of
from icebergds.formats.arrow.variant.shredded import (
    Arrays,
    Group,
    Objects,
    Scalars,
    ShreddedValue,
    TypedValues,
)
from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn, walk_columns

METADATA, VALUE, TYPED_VALUE = "metadata", "value", "typed_value"


class Place(Protocol):
    """A column of a file, for errors."""

    def __truediv__(self, name: str) -> Self: ...


def is_shredded(variant: FileColumn) -> bool:
    """Whether a variant has values outside of its column `value`."""
    return any(child.name == TYPED_VALUE for child in variant.children)


def shredded_variants(
    columns: Iterable[FileColumn], leaves: AbstractSet[int]
) -> tuple[FileColumn, ...]:
    """The shredded variants that contain any of the leaves, at every level."""
    return tuple(
        column
        for column in walk_columns(columns)
        if column.is_variant and is_shredded(column) and not leaves.isdisjoint(column.leaves)
    )


def refuse_shredded(columns: Iterable[FileColumn], leaves: AbstractSet[int], source: str) -> None:
    """Checks that no variant is shredded, as in files of other formats than Parquet.

    Args:
        columns: all columns of the file.
        leaves: the leaf columns that will be read.
        source: the file, for errors.

    Raises:
        UnsupportedFeatureError: a column to read is a shredded variant.
    """
    for column in shredded_variants(columns, leaves):
        raise UnsupportedFeatureError(
            f"column {column.name!r} of {source}: only Parquet files may hold shredded variants; "
            "leave the column out or rewrite the file"
        )


def plan_shredded_value(variant: FileColumn, place: Place) -> ShreddedValue:
    """Plans how to rebuild the values of a shredded variant.

    Args:
        variant: a column with the parts of a shredded variant, all of which will be read.
        place: the column, for errors.

    Raises:
        CorruptFileError: the columns are not those of a shredded variant.
        UnsupportedFeatureError: a column has a type that variants do not have.
    """
    metadata = next(at for at, part in enumerate(variant.children) if part.name == METADATA)
    group = _plan_group(variant, place, frozenset({METADATA, VALUE, TYPED_VALUE}))
    return ShreddedValue(metadata, group, len(variant.leaves))


def _plan_group(
    column: FileColumn, place: Place, allowed: AbstractSet[str] = frozenset({VALUE, TYPED_VALUE})
) -> Group:
    parts = {child.name: at for at, child in enumerate(column.children)}
    if (
        column.kind is not ColumnKind.STRUCT
        or len(parts) < len(column.children)
        or not parts.keys() <= allowed
        or parts.keys().isdisjoint({VALUE, TYPED_VALUE})
    ):
        raise CorruptFileError(
            f"{place}: a shredded value is a group of {VALUE!r} and {TYPED_VALUE!r}, but the file "
            f"has a {column.kind} of {sorted(child.name for child in column.children)}"
        )
    value, typed_value = parts.get(VALUE), parts.get(TYPED_VALUE)
    if value is not None:
        stored = column.children[value].arrow_type
        if not is_binary(stored) or pa.types.is_fixed_size_binary(stored):
            raise CorruptFileError(
                f"{place / VALUE}: the file stores {stored}, but encoded variants are binary"
            )
    shape = (
        None
        if typed_value is None
        else _plan_typed(column.children[typed_value], place / TYPED_VALUE)
    )
    return Group(value, typed_value, shape, str(place))


def _plan_typed(column: FileColumn, place: Place) -> TypedValues:
    match column.kind:
        case ColumnKind.STRUCT if column.children:
            return _plan_object(column, place)
        case ColumnKind.LIST:
            (element,) = column.children
            return Arrays(_plan_group(element, place / "element"), str(place))
        case ColumnKind.LEAF:
            encoder = encoder_of(column.arrow_type)
            if encoder is not None:
                return Scalars(encoder, str(place))
    found = column.kind if column.kind is ColumnKind.MAP else column.arrow_type
    raise UnsupportedFeatureError(f"{place}: variants cannot be shredded as {found}")


def _plan_object(column: FileColumn, place: Place) -> Objects:
    fields = sorted(
        (child.name.encode(), at, _plan_group(child, place / child.name))
        for at, child in enumerate(column.children)
    )
    names, indexes, groups = zip(*fields, strict=True)
    if len(set(names)) < len(names):
        raise CorruptFileError(f"{place}: two shredded fields of an object have the same name")
    return Objects(names, indexes, groups, str(place))
