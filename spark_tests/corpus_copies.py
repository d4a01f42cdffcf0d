"""Copies tables of the conformance corpus, so that they can be changed."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

from corpus import corpus_dir

from icebergds.api.table import Table, load_table


def copied_table(known: dict[str, Any], copy: Path) -> Table:
    """A copy of a table of the index, with its old paths mapped to the new ones.

    Args:
        known: the table's entry in the index.
        copy: the directory of the copy, which is created.
    """
    shutil.copytree(corpus_dir() / known["path"], copy, copy_function=shutil.copyfile)
    metadata = _metadata(known, copy)
    (copy / "metadata" / "v999.metadata.json").write_text(json.dumps(metadata))
    (copy / "metadata" / "version-hint.text").write_text("999")
    inside = {e["prefix"]: e["replace_with"].removeprefix(known["path"]) for e in known["resolve"]}
    # Some have paths of another storage than their location.
    locations = {metadata["location"]: str(copy), **{k: f"{copy}{v}" for k, v in inside.items()}}
    return load_table(str(copy), location_map=locations)


def _metadata(known: dict[str, Any], copy: Path) -> dict[str, Any]:
    """The table's metadata, with an absolute location, as writing to the table needs it."""
    data: bytes = (corpus_dir() / known["metadata"]).read_bytes()
    metadata: dict[str, Any] = json.loads(
        gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    )
    if "://" not in metadata["location"] and not metadata["location"].startswith(("/", "file:")):
        metadata["location"] = str(copy)
    metadata.get("properties", {}).pop("write.data.path", None)
    return metadata
