"""Keeps the secrets of a REST catalog out of messages."""

from __future__ import annotations

import threading

_SHORTEST = 4


class Secrets:
    """Texts that messages must not contain; tokens are added as they are fetched."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hidden: set[str] = set()

    def add(self, *texts: str | None) -> None:
        """Hides texts from now on; very short ones are not, for they occur everywhere."""
        with self._lock:
            self._hidden.update(t for t in texts if t is not None and len(t) >= _SHORTEST)

    def hide(self, text: str) -> str:
        """The text with asterisks for the secrets in it."""
        with self._lock:
            hidden = sorted(self._hidden, key=len, reverse=True)
        for secret in hidden:
            text = text.replace(secret, "***")
        return text

    def __repr__(self) -> str:
        return "Secrets(***)"
