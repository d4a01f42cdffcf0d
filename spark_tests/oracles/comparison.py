"""Comparison of canonical rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_SHOWN = 5


def difference(actual: Iterable[str], expected: Iterable[str], what: str) -> str | None:
    """None if both hold the same rows equally often, else what differs, with some rows."""
    actual_counts, expected_counts = Counter(actual), Counter(expected)
    if actual_counts == expected_counts:
        return None
    lines = [f"{what}: {actual_counts.total()} rows read, {expected_counts.total()} expected"]
    for title, rows in (
        ("missing", expected_counts - actual_counts),
        ("unexpected", actual_counts - expected_counts),
    ):
        lines += [f"  {title}: {row}  ({count} times)" for row, count in _some(rows)]
        if len(rows) > _SHOWN:
            lines.append(f"  {title}: {len(rows) - _SHOWN} more")
    return "\n".join(lines)


def _some(rows: Counter[str]) -> list[tuple[str, int]]:
    return sorted(rows.items())[:_SHOWN]
