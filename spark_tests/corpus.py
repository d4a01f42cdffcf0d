"""The conformance corpus: where it is, its vectors, its tables and the rows that they hold.

Tests that need it are skipped where it is absent.
"""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from icebergds.errors import MissingFileError

_DEFAULT = Path(__file__).resolve().parents[1] / ".." / "shared" / "corpus"


def corpus_dir() -> Path:
    """The corpus directory, or skip the test that asks."""
    path = Path(os.environ.get("ICEBERGDS_CORPUS", _DEFAULT)).resolve()
    if not (path / "index.json").exists():
        pytest.skip("conformance corpus is absent: set ICEBERGDS_CORPUS to its directory")
    return path


@cache
def load_vectors() -> dict[str, Any]:
    """The known-answer vectors."""
    return json.loads((corpus_dir() / "vectors.json").read_text())


def corpus_tables() -> list[dict[str, Any]]:
    """Every table of the index, or nothing where the corpus is absent (for parametrisation)."""
    path = Path(os.environ.get("ICEBERGDS_CORPUS", _DEFAULT)).resolve() / "index.json"
    return json.loads(path.read_text())["tables"] if path.exists() else []


def exact_tables() -> list[dict[str, Any]]:
    """The tables whose readers agree on every row, and whose rows can be compared as text."""
    readable = [table for table in corpus_tables() if table["confidence"] in ("A", "B")]
    return [table for table in readable if "type:variant" not in table["features"]]


def location_map(table: dict[str, Any]) -> dict[str, str]:
    root = corpus_dir()
    return {entry["prefix"]: str(root / entry["replace_with"]) for entry in table["resolve"]}


def expected_rows(table: dict[str, Any]) -> list[str]:
    """The rows of a table as `oracles.canon` writes them."""
    path: Path = corpus_dir() / table["expected"]["rows_file"]
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return sorted(text.decode("utf-8").splitlines())


def skip_where_files_are_absent(error: MissingFileError) -> None:
    """Some tables share files with tables that this copy of the corpus may leave out."""
    if str(corpus_dir()) in str(error):
        pytest.skip("this copy of the conformance corpus lacks files of the table")
    raise error
