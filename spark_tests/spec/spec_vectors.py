"""Known answers of the corpus, as the spec's tests want them."""

from __future__ import annotations

from typing import Any

from corpus import corpus_tables, load_vectors

from icebergds.spec.json.values import from_json
from icebergds.spec.types import IcebergType, TypeId


def cases(name: str) -> list[dict[str, Any]]:
    """A list of cases, empty where the corpus is absent: pytest then skips the test."""
    if not corpus_tables():
        return []
    found = load_vectors()[name]
    return found["cases"] if isinstance(found, dict) else found


def case_id(case: object) -> str | None:
    if not isinstance(case, dict):
        return None
    shown = ("transform", "type", "value", "json", "hex", "path", "text")
    return " ".join(ascii(case[key])[:40] for key in shown if key in case)


def value_of(field_type: IcebergType, shown: Any) -> Any:
    """The in-memory value of a case; non-finite and negative zero floats are shown as text."""
    type_id = getattr(field_type, "type_id", None)
    if type_id in (TypeId.FLOAT, TypeId.DOUBLE) and isinstance(shown, str):
        return float(shown)
    return from_json(field_type, shown)
