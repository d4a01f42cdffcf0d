"""Reads the rows of Parquet, CSV and JSON files, to append them to a table."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from math import isinf
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.cli.csv_quotes import check_quotes
from icebergds.errors import FormatError, InvalidDataError, InvalidOptionError
from icebergds.formats.arrow.types import field_to_arrow, to_array
from icebergds.spec.json.values import from_json
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    ScalarType,
    StructType,
    TypeId,
)
from icebergds.suggestions import did_you_mean

ArrowRows: TypeAlias = pa.Table | pa.RecordBatchReader


def read_rows(file: Path, schema: Schema) -> ArrowRows:
    """The rows of a file, whose kind its name says.

    CSV and JSON have the texts that `icebergds scan` writes; columns that no row has are left out.

    Args:
        schema: of the table.

    Raises:
        InvalidOptionError: the file is of another kind.
        InvalidDataError: it is not of the kind that it says, or a value does not fit its column.
    """
    kinds = {
        ".parquet": _parquet,
        ".csv": _csv,
        ".tsv": _csv,
        ".json": _json,
        ".jsonl": _json,
        ".ndjson": _json,
    }
    read = kinds.get(file.suffix.lower())
    if read is None:
        raise InvalidOptionError(
            f"file {file}: expected a name that ends in {', '.join(kinds)}; rename it"
        )
    try:
        return read(file, schema)
    except OSError as error:
        raise InvalidDataError(f"file {file} cannot be read: {error.strerror or error}") from error
    except (pa.ArrowException, ArithmeticError, FormatError, ValueError) as error:
        raise InvalidDataError(f"file {file} cannot be read: {error}") from error
    except InvalidDataError as error:
        raise InvalidDataError(f"file {file} cannot be read: {error}") from None


def _parquet(file: Path, schema: Schema) -> ArrowRows:
    import pyarrow.parquet as pq

    source = pq.ParquetFile(file)
    return pa.RecordBatchReader.from_batches(source.schema_arrow, source.iter_batches())


def _csv(file: Path, schema: Schema) -> ArrowRows:
    types = {
        field.name: field_to_arrow(field).type
        if _is_read_by_arrow(field.field_type)
        else pa.string()
        for field in schema.fields
    }
    delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
    text = file.read_bytes()
    check_quotes(text, delimiter.encode())
    kinds = {field.name: field.field_type for field in schema.fields}
    rows = _parsed(text, delimiter, types, kinds=kinds)
    found = _fields(rows.column_names, schema)
    for at, field in enumerate(found):
        if not _is_read_by_arrow(field.field_type):
            parse = _parse_json if _is_json(field.field_type) else _as_it_is
            texts = rows.column(at).to_pylist()
            try:
                values = [None if text is None else parse(text) for text in texts]
            except InvalidDataError as error:
                raise InvalidDataError(
                    f"column {field.name}, {field.field_type}: {error}"
                ) from None
            rows = rows.set_column(at, field.name, _array(field, values))
        elif pa.types.is_floating(types[field.name]):
            _refuse_overflows(field, rows.column(at), text, delimiter)
    return rows


def _parsed(
    text: bytes,
    delimiter: str,
    types: Mapping[str, pa.DataType],
    only: Sequence[str] = (),
    kinds: Mapping[str, IcebergType] = {},
) -> pa.Table:
    """The rows of CSV, with columns of these types; errors name those of Iceberg."""
    from pyarrow import csv

    # An empty line is a row without a value if there is one column.
    first_line = re.split(rb"[\r\n]", text[:_BLOCK], maxsplit=1)[0]
    is_one_column = delimiter.encode() not in re.sub(rb'"[^"]*"', b"", first_line)
    parse_options = csv.ParseOptions(
        delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=not is_one_column
    )
    convert_options = csv.ConvertOptions(
        column_types=types,
        include_columns=list(only),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    size = _BLOCK
    while True:
        read_options = csv.ReadOptions(block_size=size)
        try:
            return csv.read_csv(pa.BufferReader(text), read_options, parse_options, convert_options)
        except pa.ArrowInvalid as error:
            if "straddling" in str(error) and size <= len(text):
                # A row is longer than a block.
                size = min(size * 16, _LARGEST_BLOCK, len(text) + 1)
                continue
            if (unfit := _UNFIT.search(str(error))) is None:
                raise
            names_of = csv.open_csv(pa.BufferReader(text), read_options, parse_options)
            name = names_of.schema.names[int(unfit["column"])]
            kind = f", {kinds[name]}" if name in kinds else ""
            raise InvalidDataError(f"column {name}{kind}: {unfit['why']}") from None


def _refuse_overflows(
    field: NestedField, column: pa.ChunkedArray, text: bytes, delimiter: str
) -> None:
    """Raises InvalidDataError if a number was too large for its type: Arrow reads an infinity."""
    is_infinite = pc.is_inf(column)
    if not pc.any(is_infinite).as_py():
        return
    texts = _parsed(text, delimiter, {field.name: pa.string()}, [field.name]).column(0)
    for found in texts.filter(is_infinite).to_pylist():
        if "inf" not in found.lower():
            raise InvalidDataError(f"column {field.name}: {found} does not fit {field.field_type}")


_BLOCK = 1 << 20
_LARGEST_BLOCK = (1 << 31) - 1
_UNFIT = re.compile(
    r"In CSV column #(?P<column>\d+): (?:.*?conversion error to [^:]*: )?"
    r"(?P<why>(?:[^'\n]*'[^'\n]*')?[^.\n]*)"
)


def _json(file: Path, schema: Schema) -> ArrowRows:
    rows = list(_rows_of(_text(file)))
    fields = _fields(dict.fromkeys(name for row in rows for name in _members(row)), schema)
    if not fields and rows:
        # Without a column, there would be no rows.
        fields = list(schema.fields)
    columns = [_array(field, [row.get(field.name) for row in rows]) for field in fields]
    return pa.table(columns, schema=pa.schema([field_to_arrow(field) for field in fields]))


def _text(file: Path) -> str:
    try:
        # Some programs begin texts with a byte order mark.
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidDataError(
            f"byte {error.start} is not UTF-8, of which JSON is; save the file as UTF-8"
        ) from None


class _Number(float):
    """A number of JSON that is not an integer, and its text, which may have more digits."""

    def __new__(cls, text: str) -> _Number:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        raise InvalidDataError(_twice("an object of JSON", [name for name, _ in members]))
    return found


def _twice(what: str, names: Iterable[str]) -> str:
    counts = Counter(names)
    name = next(name for name, number in counts.items() if number > 1)
    return f"{what} has {name!r} twice; leave one of them out, or rename it"


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_Number)
_SPACE = re.compile(r"[ \t\r\n]*")


def _rows_of(text: str) -> Iterator[Any]:
    """The values of JSON texts that follow each other, and those of an array one by one."""
    at = _after_space(text, 0)
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            began = _line_of(text, at)
            more = "" if began == error.lineno else f"; the value began in line {began}"
            raise InvalidDataError(
                f"line {error.lineno} is not JSON: {error.msg} in column {error.colno}{more}"
            ) from None
        except (InvalidDataError, ValueError, RecursionError) as error:
            raise InvalidDataError(f"line {_line_of(text, at)}: {_why(error)}") from None
        yield from value if isinstance(value, list) else (value,)
        at = _after_space(text, end)


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "its values are nested too deeply"
    # Python's own advice is to raise its limit.
    return str(error).partition(";")[0] if type(error) is ValueError else str(error)


def _parse_json(text: str) -> Any:
    """A value of JSON in a column of CSV."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidDataError(f"{text[:40]!r} is not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidDataError(_why(error)) from None


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _members(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InvalidDataError(f"expected JSON objects, found {json.dumps(row)[:40]}")
    return row


def _fields(names: Iterable[str], schema: Schema) -> list[NestedField]:
    """The columns of these names."""
    names = list(names)
    if len(set(names)) < len(names):
        raise InvalidDataError(_twice("the file", names))
    known = {field.name: field for field in schema.fields}
    for name in names:
        if name not in known:
            near = did_you_mean(name, known)
            raise InvalidDataError(
                f"the table has no column {name!r}; {near or 'it has ' + ', '.join(known)}"
            )
    return [known[name] for name in names]


_BY_ARROW = frozenset(
    {
        TypeId.BOOLEAN,
        TypeId.INT,
        TypeId.LONG,
        TypeId.FLOAT,
        TypeId.DOUBLE,
        TypeId.DATE,
        TypeId.TIME,
        TypeId.TIMESTAMP,
        TypeId.TIMESTAMPTZ,
        TypeId.STRING,
        TypeId.DECIMAL,
    }
)


def _is_read_by_arrow(kind: IcebergType) -> bool:
    """Whether Arrow parses the texts of a type in CSV."""
    return isinstance(kind, ScalarType) and kind.type_id in _BY_ARROW


def _is_json(kind: IcebergType) -> bool:
    """Whether CSV has the values of a type as JSON."""
    return not isinstance(kind, ScalarType) or kind.type_id is TypeId.VARIANT


def _array(field: NestedField, values: list[Any]) -> pa.Array:
    """Values of JSON as a column."""
    convert = _converter(field.field_type)
    try:
        found = [None if value is None else convert(value) for value in values]
    except (FormatError, InvalidDataError, ValueError, ArithmeticError) as error:
        raise InvalidDataError(f"column {field.name}: {error}") from None
    return to_array(field.field_type, found)


def _converter(kind: IcebergType) -> Callable[[Any], Any]:
    """What makes a value in memory of one of JSON that is not null."""
    match kind:
        case StructType(fields=fields):
            return partial(_struct, {f.name: _converter(f.field_type) for f in fields})
        case ListType(element_type=element_type):
            return partial(_elements, _converter(element_type))
        case MapType(key_type=key_type, value_type=value_type):
            return partial(_entries, _converter(key_type), _converter(value_type))
        case DecimalType():
            return partial(_decimal, kind)
        case _ if kind.type_id in _TIMESTAMPS:
            return lambda value: from_json(kind, str(value).replace(" ", "T", 1))
        case _ if kind.type_id in (TypeId.FLOAT, TypeId.DOUBLE):
            return partial(_float, kind)
    return _SCALARS.get(kind.type_id, partial(from_json, kind))


def _struct(inner: dict[str, Callable[[Any], Any]], value: Any) -> Any:
    if unknown := [name for name in _members(value) if name not in inner]:
        raise InvalidDataError(f"a struct has no field {unknown[0]!r}; it has {', '.join(inner)}")
    found = ((value.get(name), convert) for name, convert in inner.items())
    return tuple(None if each is None else convert(each) for each, convert in found)


def _elements(element: Callable[[Any], Any], value: Any) -> Any:
    if not isinstance(value, list):
        raise InvalidDataError(f"expected an array of JSON, found {json.dumps(value)[:40]}")
    return [None if each is None else element(each) for each in value]


def _entries(key: Callable[[Any], Any], item: Callable[[Any], Any], value: Any) -> Any:
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs
    ):
        raise InvalidDataError(
            f"expected an object of JSON, or an array of pairs, found {json.dumps(value)[:40]}"
        )
    return [(key(k), None if v is None else item(v)) for k, v in pairs]


def _as_it_is(value: Any) -> Any:
    return value


def _decimal(kind: DecimalType, value: Any) -> Decimal:
    """A number or a text as a decimal with the digits that the type has."""
    text = value.text if isinstance(value, _Number) else str(value)
    try:
        given = Decimal(text)
        found = given.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    except InvalidOperation:
        raise InvalidDataError(f"{text} does not fit {kind}") from None
    if found != given or len(found.as_tuple().digits) > kind.precision:
        raise InvalidDataError(f"{text} does not fit {kind}")
    return found


def _float(kind: ScalarType, value: Any) -> Any:
    if isinstance(value, _Number) and isinf(value):
        raise InvalidDataError(f"{value.text} does not fit {kind}")
    return from_json(kind, float(value) if isinstance(value, _Number) else value)


def _variant(value: Any) -> dict[str, bytes]:
    from pyspark.sql.variant_utils import VariantUtils

    _refuse_overflow(value)
    found, metadata = VariantUtils.parse_json(json.dumps(value))
    return {"metadata": metadata, "value": found}


def _refuse_overflow(value: Any) -> None:
    match value:
        case _Number() if isinf(value):
            raise InvalidDataError(f"{value.text} does not fit a double")
        case dict() | list():
            for each in value.values() if isinstance(value, dict) else value:
                _refuse_overflow(each)


_TIMESTAMPS = frozenset(
    {TypeId.TIMESTAMP, TypeId.TIMESTAMPTZ, TypeId.TIMESTAMP_NS, TypeId.TIMESTAMPTZ_NS}
)
_EXACT = Context(prec=76)
_SCALARS: dict[TypeId, Callable[[Any], Any]] = {
    TypeId.VARIANT: _variant,
    TypeId.GEOMETRY: bytes.fromhex,
    TypeId.GEOGRAPHY: bytes.fromhex,
}
