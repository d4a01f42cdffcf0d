"""Provides tokens of Google Cloud, with the package google-auth."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from icebergds.errors import InvalidOptionError

DEFAULT_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class GoogleTokens:
    """Provides tokens (`HeaderProvider`).

    Args:
        catalog: the catalog's name in messages.
        credentials_path: a file with credentials; None for those of the environment.

    Raises:
        InvalidOptionError: google-auth is not installed, or there are no credentials.
    """

    def __init__(self, catalog: str, credentials_path: str | None, scopes: Sequence[str]) -> None:
        try:
            import google.auth
            from google.auth.exceptions import GoogleAuthError
            from google.auth.transport.requests import Request
        except ImportError as error:
            raise InvalidOptionError(
                f"catalog {catalog}: authentication by Google needs google-auth: pip install "
                "'icebergds[gcs]'"
            ) from error
        # It has no types.
        auth: Any = google.auth
        try:
            if credentials_path:
                found = auth.load_credentials_from_file(credentials_path, scopes=scopes)
            else:
                found = auth.default(scopes=scopes)
        except (GoogleAuthError, OSError, ValueError) as error:
            raise InvalidOptionError(
                f"catalog {catalog}: there are no credentials of Google: {type(error).__name__}; "
                "set gcp.auth.credentials-path to a file of a service account, or the environment "
                "variable GOOGLE_APPLICATION_CREDENTIALS"
            ) from None
        self._credentials: Any = found[0]
        self._request: Any = Request()

        self._lock = threading.Lock()

    def auth_header(self) -> str:
        with self._lock:
            if not self._credentials.valid:
                self._credentials.refresh(self._request)
            return f"Bearer {self._credentials.token}"

    def forget(self) -> None:
        """Gets a new token at the next request."""
        with self._lock:
            self._credentials.token = None
