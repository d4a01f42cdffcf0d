"""Where the conformance corpus is; tests that need it skip by name where it is absent."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

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
