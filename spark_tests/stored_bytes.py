"""Finds the files of a folder that have a text in their bytes, or in what these compress."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import fastavro


def files_with(folder: Path, text: str) -> set[str]:
    """The endings of the names of these files."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.suffix for path in paths if any(text.encode() in part for part in _parts(path))}


def _parts(path: Path) -> Iterator[bytes]:
    yield (data := path.read_bytes())
    if path.suffix == ".avro":
        for record in fastavro.reader(io.BytesIO(data)):
            yield repr(record).encode()
