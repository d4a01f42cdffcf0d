"""Gives the files of each set of a client's settings a scheme of their own.

Hadoop keeps one client for each scheme and bucket, whatever the settings of later reads are.
"""

from __future__ import annotations

import secrets


def scheme_of(client: str, settings: tuple[tuple[str, str], ...]) -> str:
    """The scheme of a client's settings in this process, which begins with the client's name."""
    # Random: it is seen in paths, and other processes may share Spark's.
    return _schemes.setdefault((client, settings), f"{client}-{secrets.token_hex(6)}")


_schemes: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}
