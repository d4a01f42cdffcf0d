"""Keeps the secrets of a REST catalog out of messages."""

from __future__ import annotations

import re
import threading
from html.entities import codepoint2name

_SHORTEST = 4


class Secrets:
    """Texts that messages must not contain; tokens are added as they are fetched."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Each with the expression that matches it, built for the first message.
        self._hidden: dict[str, re.Pattern[str] | None] = {}

    def add(self, *texts: str | None) -> None:
        """Hides texts from now on, except very short ones, which occur everywhere."""
        with self._lock:
            for text in texts:
                if text is not None and len(text) >= _SHORTEST:
                    self._hidden.setdefault(text)

    def hide(self, text: str) -> str:
        """The text with its secrets replaced by asterisks.

        Servers and gateways quote requests in URLs, forms, HTML and JSON: a secret is found in each
        of these encodings.
        """
        with self._lock:
            for secret in sorted(self._hidden, key=len, reverse=True):
                pattern = self._hidden[secret]
                if pattern is None:
                    pattern = self._hidden[secret] = _spellings(secret)
                text = pattern.sub("***", text)
        return text

    def __repr__(self) -> str:
        return "Secrets(***)"


_NAMED = {39: "apos", **codepoint2name}


def _spellings(secret: str) -> re.Pattern[str]:
    return re.compile("".join(map(_spellings_of_character, secret)))


def _spellings_of_character(character: str) -> str:
    """An expression for a character, plain or escaped for a URL, a form, HTML or JSON."""
    if character.isascii() and character.isalnum():
        return character
    code = ord(character)
    spellings = [re.escape(character)]
    octets = character.encode(errors="surrogatepass")
    # %25 is a percent sign that was escaped again.
    spellings.append("".join(f"%(?:25){{0,4}}{octet:02x}" for octet in octets))
    units = character.encode("utf-16-be", errors="surrogatepass").hex(" ", 2).split()
    spellings.append("".join(rf"\\{{0,8}}u{unit}" for unit in units))
    names = [f"#0{{0,4}}{code}", f"#x0{{0,4}}{code:x}", *filter(None, [_NAMED.get(code)])]
    spellings.append(f"&(?:amp;){{0,4}}(?:{'|'.join(names)});")
    if character == " ":
        spellings.append(r"\+")
    if character in _JSON_ESCAPES:
        spellings.append(rf"\\{_JSON_ESCAPES[character]}")
    # Repetitions are bounded, so that matching is fast for every text.
    return rf"(?i:\\{{0,8}}(?:{'|'.join(spellings)}))"


_JSON_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
