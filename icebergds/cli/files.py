"""Reads the rows of Parquet, CSV and JSON files, to append them to a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from icebergds.cli.values import is_binary
from icebergds.errors import InvalidDataError, InvalidOptionError
from icebergds.suggestions import did_you_mean

ArrowRows: TypeAlias = pa.Table | pa.RecordBatchReader


def read_rows(file: Path, schema: pa.Schema) -> ArrowRows:
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
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InvalidDataError(f"file {file} cannot be read: {error}") from error


def _parquet(file: Path, schema: pa.Schema) -> ArrowRows:
    import pyarrow.parquet as pq

    source = pq.ParquetFile(file)
    return pa.RecordBatchReader.from_batches(source.schema_arrow, source.iter_batches())


def _csv(file: Path, schema: pa.Schema) -> ArrowRows:
    from pyarrow import csv

    is_read = {field.name: field.type for field in schema if not _is_text_in_csv(field.type)}
    rows = csv.read_csv(
        file,
        parse_options=csv.ParseOptions(delimiter="\t" if file.suffix.lower() == ".tsv" else ","),
        convert_options=csv.ConvertOptions(
            column_types={field.name: is_read.get(field.name, pa.string()) for field in schema},
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    _check_names(rows.column_names, schema)
    for at, name in enumerate(rows.column_names):
        kind = schema.field(name).type
        if name in is_read:
            continue
        texts = rows.column(at).to_pylist()
        parse: Callable[[str], Any] = json.loads if pa.types.is_nested(kind) else str
        values = [None if text is None else parse(text) for text in texts]
        rows = rows.set_column(at, name, _array(values, kind))
    return rows


def _json(file: Path, schema: pa.Schema) -> ArrowRows:
    text = file.read_text(encoding="utf-8")
    rows = json.loads(text) if text.lstrip().startswith("[") else list(_lines(text))
    names = dict.fromkeys(name for row in rows for name in _members(row))
    _check_names(list(names), schema)
    fields = [field for field in schema if field.name in names]
    columns = [_array([row.get(field.name) for row in rows], field.type) for field in fields]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _lines(text: str) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise InvalidDataError(f"line {number} is not JSON: {error}") from None


def _members(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InvalidDataError(f"expected JSON objects, found {json.dumps(row)[:40]}")
    return row


def _check_names(names: list[str], schema: pa.Schema) -> None:
    for name in names:
        if name not in schema.names:
            near = did_you_mean(name, schema.names)
            raise InvalidDataError(
                f"the table has no column {name!r}; {near or 'it has ' + ', '.join(schema.names)}"
            )


def _is_text_in_csv(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) or is_binary(kind))


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values of JSON as an array: times and decimals are texts that Arrow parses."""
    convert = _converter(kind)
    found = [None if value is None else convert(value) for value in values]
    return pa.array(found, _wire(kind)).cast(kind)


def _wire(kind: pa.DataType) -> pa.DataType:
    """The type whose values JSON can have, and which can be cast to this one."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_wire(field.type)) for field in kind])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_wire(key.type)), item.with_type(_wire(item.type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_wire(kind.value_type)))
    return pa.string() if pa.types.is_temporal(kind) or pa.types.is_decimal(kind) else kind


def _converter(kind: pa.DataType) -> Callable[[Any], Any]:
    """What makes of a value of JSON, which is not null, one that Arrow takes."""
    if pa.types.is_struct(kind):
        inner = {field.name: _converter(field.type) for field in kind}

        def struct(value: Any) -> Any:
            if unknown := [name for name in _members(value) if name not in inner]:
                raise InvalidDataError(f"a struct has no field {unknown[0]!r}")
            return {k: None if v is None else inner[k](v) for k, v in value.items()}

        return struct
    if pa.types.is_map(kind):
        key, item = _converter(kind.key_type), _converter(kind.item_type)

        def entries(value: Any) -> Any:
            pairs = value.items() if isinstance(value, dict) else value
            return [(key(k), None if v is None else item(v)) for k, v in pairs]

        return entries
    if pa.types.is_list(kind):
        element = _converter(kind.value_type)
        return lambda value: [None if each is None else element(each) for each in value]
    if is_binary(kind):
        return bytes.fromhex
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return str
    if pa.types.is_floating(kind):
        return float
    return lambda value: value
