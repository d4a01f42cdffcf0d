"""Describes Thrift structs as dataclasses, whose fields have a number and a type.

    @struct
    @dataclass(frozen=True, slots=True)
    class UnlockRequest(Struct):
        lock_id: Int64 = numbered(1)

The Thrift library encodes and decodes them with the table `thrift_spec`, derived from these. Names
of fields are not sent, and neither are fields that are None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from thrift.protocol.TBase import TFrozenBase
from thrift.Thrift import TType

Int16: TypeAlias = Annotated[int, TType.I16]
Int32: TypeAlias = Annotated[int, TType.I32]
Int64: TypeAlias = Annotated[int, TType.I64]

Spec: TypeAlias = tuple[Any, ...]
"""Thrift's `thrift_spec`: each field at the index of its number."""


class Struct(TFrozenBase):  # type: ignore[misc]
    """Base of all structs; the Thrift library reads and writes its subclasses."""

    __slots__ = ()
    thrift_spec: ClassVar[Spec]


_S = TypeVar("_S", bound=type[Struct])


def numbered(number: int) -> Any:
    """A field of a struct, None by default.

    Args:
        number: the field's number in the service's definition.
    """
    return field(default=None, metadata={_NUMBER: number})


def struct(cls: _S) -> _S:
    """Derives the `thrift_spec` of a dataclass."""
    hints = get_type_hints(cls, include_extras=True)
    cls.thrift_spec = spec_of({f.metadata[_NUMBER]: (f.name, hints[f.name]) for f in fields(cls)})
    return cls


def spec_of(named: Mapping[int, tuple[str, Any]]) -> Spec:
    """The table of fields, from their numbers, names and types."""
    rows = {number: _row(number, name, hint) for number, (name, hint) in named.items()}
    return tuple(rows.get(number) for number in range(max(rows, default=-1) + 1))


_NUMBER = "number"


def _row(number: int, name: str, hint: Any) -> Spec:
    kind, arguments = _type(hint)
    return number, kind, name, arguments, None


def _type(hint: Any) -> tuple[int, Any]:
    """The type on the wire, and what else the library needs to know about it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _type(next(a for a in arguments if a is not NoneType))
    if origin is Annotated:
        return hint.__metadata__[0], None
    if origin is Sequence:
        return TType.LIST, (*_type(arguments[0]), True)
    if origin is Mapping:
        return TType.MAP, (*_type(arguments[0]), *_type(arguments[1]), False)
    if hint is str:
        return TType.STRING, "UTF8"
    if hint is bool:
        return TType.BOOL, None
    return TType.STRUCT, [hint, hint.thrift_spec]
