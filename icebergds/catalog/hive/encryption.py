"""Checks the metadata of encrypted tables by what the metastore says of it, as Java Iceberg does.

Who can write to the storage but not to the metastore could else make writers write in clear.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import replace

from icebergds.catalog.hive.messages import Table
from icebergds.catalog.hive.parameters import METADATA_HASH, METADATA_LOCATION, OWN_DIGEST
from icebergds.errors import InvalidMetadataError
from icebergds.io.fileio import FileIO
from icebergds.spec.json.documents import decompressed
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import ENCRYPTION_DATA_KEY_LENGTH, ENCRYPTION_KEY_ID

_COMPARED = (ENCRYPTION_KEY_ID.name, ENCRYPTION_DATA_KEY_LENGTH.name)


def check_metadata(
    parameters: Mapping[str, str], data: bytes, metadata: TableMetadata, what: str, location: str
) -> None:
    """Checks the metadata of a table that its entry says is encrypted.

    Args:
        parameters: of the table's entry.
        data: the metadata file.
        metadata: what is in it.
        what: the table in messages.
        location: of the metadata file.

    Raises:
        InvalidMetadataError: it is not what was committed.
    """
    if ENCRYPTION_KEY_ID.name not in parameters:
        return
    for name in _COMPARED:
        stored, found = parameters.get(name), metadata.properties.get(name)
        if stored != found:
            raise InvalidMetadataError(
                f"{what}: its metadata file {location} may have been modified: {name} is "
                f"{found!r} there, and {stored!r} in the Hive Metastore"
            )
    of_java = parameters.get(METADATA_HASH, "")
    own, _, own_location = parameters.get(OWN_DIGEST, "").partition(" ")
    for name, digest in {
        METADATA_HASH: of_java,
        # After commits of others it is that of another file.
        OWN_DIGEST: own if own_location == location else "",
    }.items():
        if digest and not hmac.compare_digest(digest, _digest(data, location)):
            raise InvalidMetadataError(
                f"{what}: its metadata file {location} may have been modified: it does not match "
                f"{name} in the Hive Metastore; restore the file, or, if another writer left "
                f"{name} as it was, remove this parameter from the table's entry"
            )


def with_digest(entry: Table, io: FileIO) -> Table:
    """The entry with a digest of the metadata file that it names, if the table is encrypted.

    Args:
        io: reads the file as it was stored.
    """
    parameters = entry.parameters or {}
    if ENCRYPTION_KEY_ID.name not in parameters:
        return entry
    location = parameters[METADATA_LOCATION]
    digest = _digest(io.read_bytes(location), location)
    return replace(entry, parameters={**parameters, OWN_DIGEST: f"{digest} {location}"})


# Java Iceberg writes files with white space, and makes the digest without.
_SPACE = re.compile(rb'("(?:[^"\\]|\\.)*")|\s+', re.DOTALL)


def _digest(data: bytes, location: str) -> str:
    text = decompressed(data, f"table metadata {location}")
    compact = _SPACE.sub(lambda found: found[1] or b"", text)
    return base64.b64encode(hashlib.sha256(compact).digest()).decode()
