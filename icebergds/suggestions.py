"""Suggests known names that are close to an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches


def did_you_mean(
    name: str, known: Iterable[str], *, most: int = 1, shown: Callable[[str], str] = str
) -> str:
    """The part of a message `did you mean a or b?`; empty if no known name is close.

    Args:
        name: what was asked for; case does not matter.
        most: how many names to suggest.
        shown: how the message spells a known name.
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name.lower(), by_lower, n=most)
    if not near:
        return ""
    return f"did you mean {' or '.join(shown(by_lower[candidate]) for candidate in near)}?"
