"""Decodes Avro records one by one, to dictionaries of stored values."""

from __future__ import annotations

import io
import struct
from functools import lru_cache
from typing import Any

import fastavro

from icebergds.errors import CorruptFileError
from icebergds.formats.avro.schema import physical_schema

DECODING_ERRORS = (
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    OverflowError,
    MemoryError,
    StopIteration,
    RecursionError,
    struct.error,
)
"""What fastavro raises for bytes that do not match the schema."""


@lru_cache(maxsize=128)
def record_schema(schema_json: str) -> Any:
    """Parses a writer's schema for `read_records`, without logical types.

    Raises:
        ValueError: it is not a valid schema.
    """
    try:
        return fastavro.parse_schema(physical_schema(schema_json))
    except (fastavro.schema.SchemaParseException, KeyError, TypeError) as error:
        raise ValueError(f"the Avro schema is not valid: {error}") from error


def read_records(count: int, plain: bytes | memoryview, schema: Any, what: str) -> list[Any]:
    """Decodes the records of a block.

    Raises:
        CorruptFileError: a record cannot be decoded, or the records do not fill the block.
    """
    stream = io.BytesIO(plain)
    try:
        records = [fastavro.schemaless_reader(stream, schema, None) for _ in range(count)]
    except DECODING_ERRORS as error:
        raise CorruptFileError(f"{what}: a record cannot be decoded: {error!r}") from error
    if stream.tell() != len(plain):
        raise CorruptFileError(
            f"{what}: {count} records fill {stream.tell()} of a block's {len(plain)} bytes"
        )
    return records
