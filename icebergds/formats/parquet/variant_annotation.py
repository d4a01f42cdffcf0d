"""Annotates variant columns in the footers of Parquet files (spec: Appendix A, Parquet).

Arrow writes the group of a variant's two binaries but not its annotation, without which readers
take it for a struct. The annotation is added to the schema in the footer, the last part of a file,
so no other offset changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Set as AbstractSet
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.formats.parquet import thrift
from icebergds.formats.parquet.encrypted_modules import rewritten_footer
from icebergds.formats.parquet.thrift import Struct, value_of, values_of

# In Parquet's FileMetaData, SchemaElement, LogicalType and VariantType.
_SCHEMA_OF_FOOTER = 2
_FIELD_ID_OF_ELEMENT = 9
_LOGICAL_TYPE_OF_ELEMENT = 10
_VARIANT_OF_LOGICAL_TYPE = 16
_VERSION_OF_VARIANT = 1

# A file ends with the length of its footer and the magic bytes.
_LENGTH_BYTES = 4
_MAGIC = b"PAR1"


class AnnotatedOutput:
    """A file object that Arrow writes to; its footer is annotated on the way to the real file.

    Args:
        output: the real file, open and empty.
        variants: the field ids of the variant columns.
        key: of the file, if Arrow encrypts it.
    """

    def __init__(
        self, output: pa.NativeFile, variants: AbstractSet[int], key: KeyMetadata | None = None
    ) -> None:
        self._output = output
        self._variants = variants
        self._key = key
        self._end: bytearray | None = None
        self.closed = False

    def write(self, data: bytes) -> int:
        """Writes data, or buffers it within `end`."""
        if self._end is None:
            self._output.write(data)
        else:
            self._end += data
        return len(data)

    def flush(self) -> None:
        """Does nothing: the real file is flushed when it is closed."""

    @contextmanager
    def end(self) -> Iterator[None]:
        """A context in which Arrow writes the rest of the file, including its footer."""
        self._end = bytearray()
        yield
        end, variants = bytes(self._end), self._variants
        if self._key is None:
            self._output.write(_with_variants(end, variants))
        else:
            self._output.write(
                rewritten_footer(end, self._key, partial(_annotated, variants=variants))
            )


def _with_variants(end: bytes, variants: AbstractSet[int]) -> bytes:
    """The end of a file with the groups of some field ids annotated as variants."""
    stop = len(end) - _LENGTH_BYTES - len(_MAGIC)
    start = stop - int.from_bytes(end[stop : stop + _LENGTH_BYTES], "little")
    encoded = _annotated(end[start:stop], variants)
    length = len(encoded).to_bytes(_LENGTH_BYTES, "little")
    return end[:start] + encoded + length + _MAGIC


def _annotated(encoded: bytes, variants: AbstractSet[int]) -> bytes:
    """A footer with the groups of some field ids annotated as variants."""
    footer, _ = thrift.decode_struct(encoded)
    found = set()
    for element in values_of(footer, _SCHEMA_OF_FOOTER, thrift.STRUCT):
        if _FIELD_ID_OF_ELEMENT in element:
            field_id = value_of(element, _FIELD_ID_OF_ELEMENT, thrift.I32)
            if field_id in variants:
                element[_LOGICAL_TYPE_OF_ELEMENT] = (thrift.STRUCT, _variant())
                found.add(field_id)
    assert found == variants, "every variant column is in the schema"
    return thrift.encode_struct(footer)


def _variant() -> Struct:
    version: Struct = {_VERSION_OF_VARIANT: (thrift.I8, 1)}
    return {_VARIANT_OF_LOGICAL_TYPE: (thrift.STRUCT, version)}
