"""Keeps the secrets in a database's URL out of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlalchemy import URL

# Parameters whose values are no secrets, which messages of drivers may quote.
_HARMLESS = ("application_name", "charset", "connect_timeout", "sslmode", "timeout")


def shown_url(url: URL) -> str:
    """A URL for messages: without the user and the parameters."""
    shown = URL.create(url.drivername, host=url.host, port=url.port, database=url.database)
    return shown.render_as_string()


def without_secrets(text: str, url: URL) -> str:
    """A driver's message, with asterisks for secrets of the URL that it quotes."""
    for secret in sorted(_secrets(url), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return text


def _secrets(url: URL) -> Iterator[str]:
    """The password, and the values of parameters that are not known to be harmless."""
    if url.password:
        yield url.password
    for name, value in url.query.items():
        if name not in _HARMLESS:
            yield from filter(None, (value,) if isinstance(value, str) else value)
