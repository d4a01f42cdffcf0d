"""Describes existing data files of any format."""

from __future__ import annotations

from icebergds.encryption.stored_files import decrypting, key_of_file
from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.avro.data_reader import stored_avro
from icebergds.formats.data_file.encryption import encrypted_orc, telling_encrypted
from icebergds.formats.data_file.stored_file import StoredFile
from icebergds.formats.orc.stored_file import stored_orc
from icebergds.formats.parquet.stored_file import stored_parquet
from icebergds.io.failures import storage_failures
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileFormat
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema

_DESCRIBE = {
    FileFormat.PARQUET: stored_parquet,
    FileFormat.ORC: stored_orc,
    FileFormat.AVRO: stored_avro,
}
# The first and last bytes of Parquet files, and the first ones of the others.
_MAGIC = {
    b"PAR1": FileFormat.PARQUET,
    b"PARE": FileFormat.PARQUET,
    b"ORC": FileFormat.ORC,
    b"Obj\x01": FileFormat.AVRO,
}


def describe_stored_file(
    io: FileIO, location: str, schema: Schema, name_mapping: NameMapping, size: int | None = None
) -> tuple[FileFormat, StoredFile]:
    """Reads a file's footer; its format is that of its name or else of its first bytes.

    Args:
        schema: of the table.
        name_mapping: gives columns their field ids if the file has none.
        size: of the file in bytes, if it is known.

    Raises:
        MissingFileError: the file does not exist.
        CorruptFileError: the file is damaged, or of another format than its name says.
        UnsupportedFeatureError: the file is in no known format, or encrypted.
        StorageError: the file cannot be read.
    """
    with storage_failures("reading", location), io.open(location, size) as handle:
        file_format = _named_format(location)
        if file_format is None:
            first = handle.read_at(min(4, handle.size()), 0)
            file_format = next((f for magic, f in _MAGIC.items() if first.startswith(magic)), None)
        if file_format is None:
            raise UnsupportedFeatureError(
                f"{location} is not a data file: it is neither Parquet, ORC nor Avro, by its name "
                "or its first bytes"
            )
        with telling_encrypted(handle, location):
            return file_format, _DESCRIBE[file_format](handle, location, schema, name_mapping)


def read_stored_file(
    io: FileIO,
    location: str,
    file_format: FileFormat,
    schema: Schema,
    name_mapping: NameMapping,
    size: int | None = None,
    key_metadata: bytes | None = None,
) -> StoredFile:
    """Reads the footer of a file of a known format; else as `describe_stored_file`.

    Args:
        key_metadata: of the file, as its manifest has it; None if it is not encrypted.
    """
    if file_format not in _DESCRIBE:
        raise UnsupportedFeatureError(f"{location}: {file_format} is not a data file format")
    key = key_of_file(key_metadata, location)
    if key is not None and file_format is FileFormat.ORC:
        raise encrypted_orc(location)
    stream_key = key if file_format is FileFormat.AVRO else None
    with (
        storage_failures("reading", location),
        io.open(location, size) as handle,
        decrypting(handle, stream_key, location) as plain,
        telling_encrypted(plain, location),
    ):
        if file_format is FileFormat.PARQUET:
            return stored_parquet(plain, location, schema, name_mapping, key)
        return _DESCRIBE[file_format](plain, location, schema, name_mapping)


def _named_format(location: str) -> FileFormat | None:
    ending = location.rpartition(".")[2].lower()
    return next((known for known in _DESCRIBE if known.value == ending), None)
