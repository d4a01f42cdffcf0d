"""Suggests known names that are close to an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches


def did_you_mean(
    name: str,
    known: Iterable[str],
    *,
    most: int = 1,
    shown: Callable[[str], str] = str,
    closeness: float = 0.6,
) -> str:
    """The part of a message `did you mean a or b?`; empty if no known name is close.

    Args:
        name: what was asked for; case does not matter.
        most: how many names to suggest.
        shown: how the message spells a known name.
        closeness: how alike names must be, from 0 to 1.
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name.lower(), by_lower, n=most, cutoff=closeness)
    if not near:
        return ""
    return f"did you mean {' or '.join(shown(by_lower[candidate]) for candidate in near)}?"


def nearest_of(name: str, known: Iterable[str], *, most: int = 6) -> str:
    """The part of a message `did you mean a?`, or else `the nearest are a, b, c`.

    Args:
        most: how many names there are at most.
    """
    names = list(known)
    near = did_you_mean(name, names, shown=repr)
    others = get_close_matches(name, names, n=most, cutoff=0)
    return near or f"{'the nearest' if len(names) > most else 'there'} are {', '.join(others)}"
