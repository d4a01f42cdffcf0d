"""Reads footers of Parquet files as Arrow should see them.

Refuses encrypted files without a key, even if the footer is plain text.
"""

from __future__ import annotations

import inspect
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.errors import CorruptFileError
from icebergds.formats.data_file.encryption import encrypted
from icebergds.formats.data_file.file_schema import ENTRIES, storage_type
from icebergds.formats.parquet import thrift
from icebergds.formats.parquet.encrypted_modules import rewritten_footer
from icebergds.formats.parquet.encryption import MAGIC, decryption_options
from icebergds.formats.parquet.thrift import Struct

# One storage request reads most footers completely.
_TAIL_READ = 64 * 1024
# After the footer: its length and a magic number.
_TRAILER = 8
# FileMetaData: schema, key_value_metadata, encryption_algorithm.
_SCHEMA, _KEY_VALUES, _ENCRYPTION = 2, 5, 8
# KeyValue: key.
_KEY = 1
# SchemaElement: repetition_type, name, num_children, converted_type, logicalType.
_REPETITION, _NAME, _NUM_CHILDREN, _CONVERTED, _LOGICAL = 3, 4, 5, 6, 10
_OPTIONAL, _REPEATED = 1, 2
# Of ConvertedType and of LogicalType.
_CONVERTED_MAPS, _CONVERTED_LIST = (1, 2), 3
_LOGICAL_MAP, _LOGICAL_LIST = 2, 3
_ARROW_SCHEMA = b"ARROW:schema"


def read_footer(
    handle: pa.NativeFile, location: str, key: KeyMetadata | None = None
) -> pq.FileMetaData:
    """Reads the footer of a file.

    Columns have the types that Parquet gives them, as for every other reader: durations, which
    only Arrow's own schema tells, are numbers. Maps with optional keys, which Arrow refuses, are
    lists of `ENTRIES`.

    Args:
        handle: the open file; it is not closed.
        location: of the file, for errors.
        key: of the file, if it is encrypted.

    Raises:
        pa.ArrowException, OSError: the footer cannot be read.
        CorruptFileError: there is a key, but the footer is not encrypted.
        UnsupportedFeatureError: the footer or columns are encrypted, and there is no key. pyarrow
            aborts the process if it is asked about an encrypted column.
    """
    size = handle.size()
    tail = handle.read_at(min(size, _TAIL_READ), max(0, size - _TAIL_READ))
    if key is not None:
        return _encrypted_footer(handle, tail[-_TRAILER:], location, key)
    if tail[-4:] == MAGIC:
        raise encrypted(location)
    length = int.from_bytes(tail[-_TRAILER:-4], "little")
    if len(tail) < length + _TRAILER <= size:
        tail = handle.read_at(length + _TRAILER, size - length - _TRAILER)
    footer = tail[-length - _TRAILER :]
    try:
        file = open_parquet(pa.BufferReader(footer))
    # Extension types that others registered may fail with anything.
    except Exception:
        rewritten = _rewritten(footer, location)
        if rewritten == footer:
            raise
        return open_parquet(pa.BufferReader(rewritten)).metadata
    metadata = file.metadata
    # The footer of a file with encrypted columns is signed if it is not encrypted; the signature
    # follows the metadata.
    if metadata.serialized_size != length and _is_encrypted(_decoded(footer)):
        raise encrypted(location)
    if _ARROW_SCHEMA in footer and any(map(_has_duration, file.schema_arrow.types)):
        return open_parquet(pa.BufferReader(_rewritten(footer, location))).metadata
    return metadata


def _encrypted_footer(
    handle: pa.NativeFile, trailer: bytes, location: str, key: KeyMetadata
) -> pq.FileMetaData:
    magic = trailer[-4:]
    if magic != MAGIC:
        raise CorruptFileError(
            f"{location} ends with {magic!r}, but its key metadata says that it is an encrypted "
            f"Parquet file, which ends with {MAGIC!r}; it was replaced by another file, or damaged"
        )
    file = open_parquet(handle, key=key)
    if not any(map(_has_duration, file.schema_arrow.types)):
        return file.metadata
    length = int.from_bytes(trailer[:-4], "little") + _TRAILER
    end = rewritten_footer(
        handle.read_at(length, handle.size() - length),
        key,
        lambda footer: _rewritten(footer + trailer, location)[:-_TRAILER],
    )
    return open_parquet(pa.BufferReader(end), key=key).metadata


def _has_duration(arrow_type: pa.DataType) -> bool:
    stored = storage_type(arrow_type)
    return pa.types.is_duration(stored) or any(
        _has_duration(stored.field(at).type) for at in range(stored.num_fields)
    )


def _decoded(footer: bytes) -> Struct:
    """The fields of a footer; none if it is damaged."""
    with suppress(thrift.ThriftError):
        return thrift.decode_struct(footer)[0]
    return {}


def _is_encrypted(fields: Struct) -> bool:
    return _ENCRYPTION in fields


def _rewritten(footer: bytes, location: str) -> bytes:
    """The footer without Arrow's own schema, its maps with optional keys as lists."""
    fields = _decoded(footer)
    if _is_encrypted(fields):
        raise encrypted(location)
    told = _structs(fields, _KEY_VALUES)
    kept = [entry for entry in told if entry.get(_KEY) != (thrift.BINARY, _ARROW_SCHEMA)]
    is_changed = kept != told
    told[:] = kept
    elements = _structs(fields, _SCHEMA)
    # The elements are in depth-first order.
    for group, entries, key in zip(elements, elements[1:], elements[2:], strict=False):
        if _is_map(group, entries) and _number(key, _REPETITION) == _OPTIONAL:
            group[_CONVERTED] = (thrift.I32, _CONVERTED_LIST)
            group[_LOGICAL] = (thrift.STRUCT, {_LOGICAL_LIST: (thrift.STRUCT, {})})
            # Older writers annotate the entries, too.
            entries.pop(_CONVERTED, None)
            entries.pop(_LOGICAL, None)
            entries[_NAME] = (thrift.BINARY, ENTRIES.encode())
            is_changed = True
    if not is_changed:
        return footer
    encoded = thrift.encode_struct(fields)
    return encoded + len(encoded).to_bytes(4, "little") + footer[-4:]


def _is_map(group: Struct, entries: Struct) -> bool:
    logical = group.get(_LOGICAL, (thrift.STRUCT, {}))
    return (
        (
            (logical[0] == thrift.STRUCT and _LOGICAL_MAP in logical[1])
            or _number(group, _CONVERTED) in _CONVERTED_MAPS
        )
        and _number(group, _NUM_CHILDREN) == 1
        and _number(entries, _REPETITION) == _REPEATED
        and _number(entries, _NUM_CHILDREN) == 2
    )


def _number(fields: Struct, field_id: int) -> int | None:
    kind, value = fields.get(field_id, (None, None))
    return value if kind == thrift.I32 else None


def _structs(fields: Struct, field_id: int) -> list[Struct]:
    with suppress(thrift.ThriftError):
        return thrift.values_of(fields, field_id, thrift.STRUCT)
    return []


# Java Iceberg shreds variants of 50 levels into schemas deeper than the 100 that Arrow reads. Older
# versions of Arrow have no limit.
_OPTIONS = inspect.signature(pq.ParquetFile.__init__).parameters
_DEEP = {"schema_depth_limit": 1000} if "schema_depth_limit" in _OPTIONS else {}


def open_parquet(
    handle: pa.NativeFile,
    metadata: pq.FileMetaData | None = None,
    buffer_size: int = 0,
    key: KeyMetadata | None = None,
    *,
    checks_pages: bool = False,
) -> pq.ParquetFile:
    """Opens a file whose columns are read through buffers, or whole if `buffer_size` is 0.

    Args:
        key: of the file, if it is encrypted.
        checks_pages: compare pages with their checksums, where they have some.
    """
    return pq.ParquetFile(
        handle,
        metadata=metadata,
        pre_buffer=False,
        buffer_size=buffer_size,
        # Nanoseconds, the default, would wrap outside of the years 1677 to 2262.
        coerce_int96_timestamp_unit="us",
        page_checksum_verification=checks_pages,
        **decryption_options(key),
        **_DEEP,
    )
