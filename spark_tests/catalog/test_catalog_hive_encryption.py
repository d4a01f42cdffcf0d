"""What a metastore says of encrypted tables, and what their metadata is checked by."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from built.metadata import new_table
from hive_server import HiveServer
from hive_tables import TABLE, create_table, metastore, open_hive_catalog, set_property

from icebergds.catalog.hive.calls import ALTER_TABLE, GET_TABLE
from icebergds.catalog.hive.catalog import HiveCatalog
from icebergds.catalog.hive.encryption import check_metadata
from icebergds.catalog.hive.messages import EnvironmentContext, GetTableRequest
from icebergds.errors import InvalidMetadataError, InvalidOptionError
from icebergds.spec.json.metadata import metadata_to_json, serialise_metadata
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.updates.table_updates import RemoveProperties, SetProperties

_PROPERTIES = {
    "format-version": "3",
    "encryption.key-id": "keyA",
    "encryption.data-key-length": "32",
    "a text": 'with "quotes", a \\ and\n spaces  ü',
}


def _metadata(**properties: str | None) -> TableMetadata:
    """Metadata of an encrypted table, without the properties that are None here."""
    named = {k.replace("__", ".").replace("_", "-"): v for k, v in properties.items()}
    given = {k: v for k, v in (_PROPERTIES | named).items() if v is not None}
    return new_table(3, properties=given)


def _check(parameters: Mapping[str, str], data: bytes, metadata: TableMetadata) -> None:
    check_metadata(parameters, data, metadata, "table lake.db.t", "v1.metadata.json")


def _as_java_writes_it(metadata: TableMetadata) -> tuple[bytes, str]:
    """A file with white space, and the digest of the same without."""
    found = metadata_to_json(metadata)
    compact = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    pretty = json.dumps(found, indent=2, separators=(",", " : "), ensure_ascii=False).encode()
    return pretty, base64.b64encode(hashlib.sha256(compact).digest()).decode()


@pytest.mark.parametrize("compress", [False, True])
def test_metadata_matches_the_digest_of_java(compress: bool) -> None:
    metadata = _metadata()
    data, digest = _as_java_writes_it(metadata)
    if compress:
        data = serialise_metadata(metadata, compress=True)
    parameters = {**_PROPERTIES, "metadata_hash": digest}
    _check(parameters, data, metadata)
    tampered = replace(metadata, last_updated_ms=metadata.last_updated_ms + 1)
    with pytest.raises(InvalidMetadataError, match=r"lake\.db\.t: .*does not match metadata_hash"):
        _check(parameters, serialise_metadata(tampered, compress), tampered)


def test_spaces_in_texts_count() -> None:
    metadata = _metadata()
    data, digest = _as_java_writes_it(metadata)
    changed = data.replace(b"spaces  ", b"spaces ")
    assert changed != data
    with pytest.raises(InvalidMetadataError, match="does not match metadata_hash"):
        _check({**_PROPERTIES, "metadata_hash": digest}, changed, metadata)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (_metadata(encryption__key_id=None), "encryption.key-id is None there, and 'keyA'"),
        (_metadata(encryption__key_id="keyB"), "encryption.key-id is 'keyB' there, and 'keyA'"),
        (_metadata(encryption__data_key_length="16"), "data-key-length is '16' there, and '32'"),
        (_metadata(encryption__data_key_length=None), "data-key-length is None there, and '32'"),
    ],
)
def test_properties_that_the_metastore_has_otherwise_are_refused(
    metadata: TableMetadata, said: str
) -> None:
    data = serialise_metadata(metadata)
    with pytest.raises(InvalidMetadataError, match=said):
        _check(_PROPERTIES, data, metadata)
    # Also if the digest fits, which who can write the metastore can make.
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    with pytest.raises(InvalidMetadataError, match=said):
        _check({**_PROPERTIES, "metadata_hash": digest}, data, metadata)


def test_what_the_metastore_does_not_call_encrypted_is_not_checked() -> None:
    metadata = _metadata()
    _check({"metadata_hash": "stale"}, serialise_metadata(metadata), metadata)


# With a metastore.


def _catalog(hive: HiveServer, tmp_path: Path) -> HiveCatalog:
    return open_hive_catalog(hive.uri, tmp_path)


def _parameters(hive: HiveServer) -> dict[str, str]:
    with metastore(hive).connect() as connection:
        entry = connection.ask(GET_TABLE, GetTableRequest("db", "t", None)).table
    return dict(entry.parameters or {})


def _set_parameters(hive: HiveServer, **changes: str) -> None:
    with metastore(hive).connect() as connection:
        entry = connection.ask(GET_TABLE, GetTableRequest("db", "t", None)).table
        changed = replace(entry, parameters={**(entry.parameters or {}), **changes})
        connection.tell(ALTER_TABLE, "db", "t", changed, EnvironmentContext({}))


def test_encrypted_tables_are_kept_as_java_does(hive: HiveServer, tmp_path: Path) -> None:
    catalog = _catalog(hive, tmp_path)
    created = create_table(catalog, _PROPERTIES)
    found = _parameters(hive)
    assert found["encryption.key-id"] == "keyA"
    assert found["encryption.data-key-length"] == "32"
    assert "metadata_hash" not in found
    # As after a commit of Java.
    data = Path(created.metadata_location.removeprefix("file:")).read_bytes()
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    _set_parameters(hive, metadata_hash=digest)
    assert catalog.load(TABLE).metadata == created.metadata
    # Ours would not be the digest that Java makes of the same metadata.
    set_property(catalog)
    assert "metadata_hash" not in _parameters(hive)
    assert catalog.load(TABLE).metadata.properties["k"] == "v"


def test_modified_metadata_is_refused(hive: HiveServer, tmp_path: Path) -> None:
    catalog = _catalog(hive, tmp_path)
    file = Path(create_table(catalog, _PROPERTIES).metadata_location.removeprefix("file:"))
    data = file.read_bytes()
    for found, instead in (
        (b'"encryption.key-id":"keyA"', b'"another-property":"keyA"'),
        (b'"last-column-id":1', b'"last-column-id":2'),
    ):
        changed = data.replace(found, instead)
        assert changed != data
        file.write_bytes(changed)
        with pytest.raises(InvalidMetadataError, match=r"lake\.db\.t: .*may have been modified"):
            set_property(catalog)
    file.write_bytes(data)
    set_property(catalog)
    _set_parameters(hive, metadata_hash="c3RhbGU=")
    with pytest.raises(InvalidMetadataError, match="does not match metadata_hash"):
        catalog.load(TABLE)


def test_a_digest_is_that_of_the_file_that_the_entry_names(
    hive: HiveServer, tmp_path: Path
) -> None:
    catalog = _catalog(hive, tmp_path)
    first = create_table(catalog, _PROPERTIES)
    digest, location = _parameters(hive)["icebergds.metadata-digest"].split(" ")
    assert location == first.metadata_location
    second = set_property(catalog)
    later, location = _parameters(hive)["icebergds.metadata-digest"].split(" ")
    assert location == second.metadata_location
    assert later != digest
    # As a commit of Java leaves it.
    _set_parameters(hive, **{"icebergds.metadata-digest": f"{digest} {first.metadata_location}"})
    assert catalog.load(TABLE).metadata == second.metadata
    _set_parameters(hive, **{"icebergds.metadata-digest": f"{digest} {second.metadata_location}"})
    with pytest.raises(InvalidMetadataError, match=r"does not match icebergds\.metadata-digest"):
        catalog.load(TABLE)


def test_a_metadata_file_of_others_can_be_registered(hive: HiveServer, tmp_path: Path) -> None:
    catalog = _catalog(hive, tmp_path)
    catalog.create_namespace(("db",), {})
    metadata = replace(_metadata(), location=str(tmp_path / "t"))
    pretty, _ = _as_java_writes_it(metadata)
    file = tmp_path / "00001-of-others.metadata.json"
    file.write_bytes(pretty)
    catalog.register(TABLE, str(file))
    assert catalog.load(TABLE).metadata == metadata
    assert "icebergds.metadata-digest" in _parameters(hive)


def test_the_master_key_stays(hive: HiveServer, tmp_path: Path) -> None:
    catalog = _catalog(hive, tmp_path)
    create_table(catalog, _PROPERTIES)
    operations = catalog.operations(TABLE)
    for update in (
        RemoveProperties(("encryption.key-id",)),
        SetProperties({"encryption.key-id": "b"}),
    ):
        with pytest.raises(InvalidOptionError, match="'keyA' cannot be"):
            operations.commit(operations.refresh(), [], [update])
    assert _parameters(hive)["encryption.key-id"] == "keyA"
