"""Parses schemas from text by the grammar of Spark SQL: `id bigint NOT NULL, tags array<string>`.

Types that Iceberg lacks become those that a DataFrame's columns become (docs/types.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import NoReturn

from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.expr.sql_literals import extract_literals
from icebergds.formats.arrow.spatial import geography_of, geometry_of
from icebergds.spec.evolution.fresh_ids import with_fresh_ids
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARIANT,
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from icebergds.suggestions import did_you_mean


def parse_schema(text: str) -> Schema:
    """Parses columns as Spark's `StructType.fromDDL` does; field ids count from 1.

    A column is a name, a type, and optionally `NOT NULL` and `COMMENT 'text'`. Names other than
    ASCII letters, digits and `_` are in backticks.

    Raises:
        InvalidOptionError: the text cannot be parsed, or a type or a clause is not supported.
    """
    fields = _Parser(text).schema()
    return Schema(with_fresh_ids(fields, count(1)))


_TYPES: dict[str, IcebergType] = {
    "boolean": BOOLEAN,
    "tinyint": INT,
    "byte": INT,
    "smallint": INT,
    "short": INT,
    "int": INT,
    "integer": INT,
    "bigint": LONG,
    "long": LONG,
    "float": FLOAT,
    "real": FLOAT,
    "double": DOUBLE,
    "date": DATE,
    "timestamp": TIMESTAMPTZ,
    "timestamp_ltz": TIMESTAMPTZ,
    "timestamp_ntz": TIMESTAMP,
    "string": STRING,
    "binary": BINARY,
    "void": UNKNOWN,
    "variant": VARIANT,
}
_DECIMALS = ("decimal", "dec", "numeric")
_CHARACTERS = ("char", "character", "varchar")
_NESTED = ("array", "map", "struct")
_SPATIAL = {"geometry": geometry_of, "geography": geography_of}
_NAMES = (*_TYPES, *_DECIMALS, *_CHARACTERS, "time", *_SPATIAL, *_NESTED)
_CLAUSES = ("default", "generated", "primary", "unique", "check", "references", "null")
# Types of Iceberg that Spark's SQL does not have.
_NOT_IN_TEXT = ("uuid", "fixed", "timestamp_ns", "timestamptz_ns")
# As deep as types in metadata may be nested.
_MAX_DEPTH = 100
_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<literal>[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<number>\d+(?:[lsydf]|bd|e\d+)?(?!\w))
    | (?P<word>\w+)
    | (?P<sign>.)
    """,
    re.DOTALL | re.VERBOSE | re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int

    def says(self, *words: str) -> bool:
        """Whether this is one of the words, which are in lower case, or signs."""
        return self.kind in ("word", "sign") and self.text.lower() in words


class _Parser:
    """Recursive descent; reads from `at`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [*_tokens(text), _Token("end", "", len(text))]
        self.at = 0

    def schema(self) -> tuple[NestedField, ...]:
        if self.token.says("struct") and self.tokens[self.at + 1].says("<"):
            # As a DataFrame's schema is written by `simpleString()`.
            whole = self.type_of("the schema", 0)
            assert isinstance(whole, StructType), "it is a struct"
            fields = whole.fields
        else:
            fields = self.fields("", 0)
        if self.token.kind != "end":
            self.refuse("a comma, or the end of the schema")
        return fields

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.token
        self.at += 1
        return token

    def takes(self, *words: str) -> bool:
        """Reads one of the words or signs, if it is next."""
        if not self.token.says(*words):
            return False
        self.at += 1
        return True

    def require(self, sign: str, what: str) -> None:
        if not self.takes(sign):
            self.refuse(f"{sign!r} {what}")

    def fields(self, prefix: str, depth: int) -> tuple[NestedField, ...]:
        found = [self.field(prefix, depth)]
        while self.takes(","):
            found.append(self.field(prefix, depth))
        return tuple(found)

    def field(self, prefix: str, depth: int) -> NestedField:
        token = self.token
        if token.kind not in ("quoted", "word"):
            self.refuse("the name of a column")
        self.at += 1
        quoted = token.kind == "quoted"
        name = token.text[1:-1].replace("``", "`") if quoted else token.text
        path = prefix + name
        self.takes(":")
        field_type = self.type_of(f"column {path!r}", depth, f"{path}.")
        required, doc = self.clauses(path)
        return NestedField(0, name, field_type, required, doc)

    def clauses(self, path: str) -> tuple[bool, str | None]:
        """Whether NOT NULL follows, and the comment that follows."""
        required, doc = False, None
        while True:
            if not required and self.takes("not"):
                self.require("null", "after NOT")
                required = True
            elif doc is None and self.takes("comment"):
                doc = self.comment()
            elif self.token.says(*_CLAUSES):
                raise self.error(
                    f"column {path!r} has the clause {self.token.text.upper()}, which is not "
                    "supported here; expected only NOT NULL and COMMENT after the type"
                )
            else:
                return required, doc

    def comment(self) -> str:
        if self.token.kind != "literal":
            self.refuse("the text of the comment in quotes")
        try:
            (value,) = extract_literals(self.take().text)[1]
        except InvalidFilterError as error:
            raise self.error(str(error).partition(": ")[2]) from None
        assert isinstance(value, str), "it is a literal of text"
        return value

    def type_of(self, what: str, depth: int, prefix: str = "") -> IcebergType:
        if depth > _MAX_DEPTH:
            raise self.error(f"{what}: types are nested more than {_MAX_DEPTH} deep")
        if self.token.kind != "word":
            self.refuse(f"the type of {what}")
        token = self.take()
        name = token.text.lower()
        if name in _NESTED:
            return self.nested(name, what, depth, prefix)
        if name in _SPATIAL:
            return self.spatial(name, what)
        numbers = self.numbers(name)
        if name in _DECIMALS and len(numbers) <= 2:
            return self.decimal(what, *numbers)
        if name in _CHARACTERS and len(numbers) == 1:
            return STRING
        if name == "time" and (not numbers or (len(numbers) == 1 and numbers[0] <= 6)):
            return TIME
        if name in _TYPES and not numbers:
            if name == "string" and self.takes("collate"):
                self.collation()
            return _TYPES[name]
        raise self.unknown(what, name, numbers)

    def spatial(self, name: str, what: str) -> IcebergType:
        found = None
        if self.takes("("):
            token = self.take()
            shown = f"{name}({token.text})"
            if token.text.isdecimal() and len(token.text) <= 9:
                found = _SPATIAL[name](int(token.text))
            self.require(")", f"after the parameter of {name}")
        else:
            shown = name
        if found is None:
            raise self.error(
                f"{what} has the type {shown}: expected the number of a coordinate reference "
                f"system that Spark has, such as {name}(4326); for others, give the schema as "
                "icebergds.Schema with the types of icebergds.types"
            )
        return found

    def collation(self) -> None:
        """Reads the name of a collation, which Iceberg's strings do not have."""
        while True:
            if self.token.kind not in ("word", "quoted"):
                self.refuse("the name of a collation")
            self.at += 1
            if not self.takes("."):
                return

    def nested(self, name: str, what: str, depth: int, prefix: str) -> IcebergType:
        self.require("<", f"after {name} in {what}")
        if name == "struct" and self.takes(">"):
            return StructType(())
        inner: IcebergType
        if name == "struct":
            inner = StructType(self.fields(prefix, depth + 1))
        elif name == "array":
            inner = ListType(0, self.type_of(what, depth + 1, f"{prefix}element."))
        else:
            key = self.type_of(what, depth + 1, f"{prefix}key.")
            self.require(",", f"after the type of the keys in {what}")
            inner = MapType(0, key, 0, self.type_of(what, depth + 1, f"{prefix}value."))
        self.require(">", f"at the end of the {name} in {what}")
        return inner

    def numbers(self, name: str) -> list[int]:
        """The parameters of a type."""
        if not self.takes("("):
            return []
        found: list[int] = []
        while True:
            if not self.token.text.isdecimal() or len(self.token.text) > 9:
                self.refuse(f"a number as parameter of {name}")
            found.append(int(self.take().text))
            if not self.takes(","):
                break
        self.require(")", f"after the parameters of {name}")
        return found

    def decimal(self, what: str, precision: int = 10, scale: int = 0) -> DecimalType:
        if not 1 <= precision <= 38 or scale > precision:
            raise self.error(
                f"{what} is of type decimal({precision}, {scale}); expected at most 38 digits, and "
                "not more of them after the point"
            )
        return DecimalType(precision, scale)

    def unknown(self, what: str, name: str, numbers: list[int]) -> InvalidOptionError:
        shown = f"{name}({', '.join(map(str, numbers))})" if numbers else name
        if name == "interval":
            why = "Iceberg does not have intervals; store a number of days or of microseconds"
        elif name in _NOT_IN_TEXT:
            why = (
                "a schema as text does not take this type; give the schema as icebergds.Schema "
                "with the types of icebergds.types"
            )
        elif name in _CHARACTERS:
            why = f"expected its length, such as {name}(10)"
        elif name in _NAMES:
            why = "it does not take these parameters"
        else:
            why = did_you_mean(name, _NAMES) or f"expected one of {', '.join(_NAMES)}"
        return self.error(f"{what} has the type {shown}: {why}")

    def refuse(self, expected: str) -> NoReturn:
        rest = self.text[self.token.start :].strip()
        where = f"at {rest[:40]!r}" if rest else "at its end"
        hint = ""
        if self.token.kind == "sign" and self.token.text not in "<>(),:":
            hint = (
                "; names other than ASCII letters, digits and _ are in backticks: `unit price` int"
            )
        elif self.token.kind == "number":
            hint = "; a name that is a number is in backticks: `1` int"
        raise self.error(f"cannot be parsed {where}: expected {expected}{hint}")

    def error(self, why: str) -> InvalidOptionError:
        return InvalidOptionError(f"schema {self.text!r}: {why}")


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        assert kind is not None, "the last group matches anything"
        if kind != "space":
            yield _Token(kind, match.group(), match.start())
