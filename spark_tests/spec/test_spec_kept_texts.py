"""JSON texts of what stands in one version of a table's metadata after another."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings, strategies as st

from icebergds.spec.json.metadata import (
    metadata_to_json,
    parse_metadata,
    serialise_metadata,
)
from icebergds.spec.json.recent_documents import KeptTexts
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.types import INT, STRING, NestedField
from icebergds.spec.updates.apply_updates import apply_updates
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.spec.updates.table_updates import AddSchema, UpgradeFormatVersion


def _metadata(version: int, names: list[str]) -> TableMetadata:
    schema = Schema(tuple(NestedField(i + 1, name, INT) for i, name in enumerate(names)))
    updates = new_table_updates(
        schema, location="s3://b/t", spec=PartitionSpec(), format_version=version, properties={}
    )
    return apply_updates(None, updates, now_ms=1)


def _plain(metadata: TableMetadata) -> bytes:
    """The metadata file as `json` alone writes it."""
    document = metadata_to_json(metadata)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


@settings(deadline=None)
@given(st.sampled_from([1, 2, 3]), st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_metadata_is_written_as_json_writes_it(version: int, names: list[str]) -> None:
    names = [name.encode(errors="replace").decode() for name in names]
    metadata = _metadata(version, list(dict.fromkeys(name.lower() for name in names)))
    assert serialise_metadata(metadata) == serialise_metadata(metadata) == _plain(metadata)


def test_later_versions_have_what_is_new_in_them() -> None:
    metadata = _metadata(2, ["a", "b"])
    assert serialise_metadata(metadata) == _plain(metadata)
    fields = (*metadata.schema().fields, NestedField(3, "c", STRING))
    later = apply_updates(metadata, [AddSchema(Schema(fields))], now_ms=2)
    assert serialise_metadata(later) == _plain(later)
    assert len(parse_metadata(serialise_metadata(later), "later").schemas) == 2


def test_snapshots_are_written_in_the_form_of_each_format_version() -> None:
    snapshot = Snapshot(1, timestamp_ms=2, manifest_list="s3://b/t/l.avro", summary={})
    first = replace(_metadata(1, ["a"]), snapshots=(snapshot,))
    assert serialise_metadata(first) == _plain(first)
    second = apply_updates(first, [UpgradeFormatVersion(2)], now_ms=2)
    assert second.snapshots[0] is snapshot
    assert serialise_metadata(second) == _plain(second)
    assert b'"sequence-number":0' in serialise_metadata(second)
    assert b'"sequence-number":0' not in serialise_metadata(first)


def test_texts_go_with_what_they_are_of() -> None:
    written: list[Any] = []

    def to_json(schema: Schema) -> int:
        written.append(schema.schema_id)
        return schema.schema_id

    texts = KeptTexts(to_json)
    schema = Schema((), schema_id=7)
    assert [texts.of(schema), texts.of(schema)] == ["7", "7"]
    assert written == [7]
    # An equal one is another.
    assert texts.of(Schema((), schema_id=7)) == "7"
    del schema
    gc.collect()
    assert not texts._found
