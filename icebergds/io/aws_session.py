"""Creates botocore clients from settings."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialProvider,
    CredentialResolver,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import NoCredentialsError
from botocore.session import Session

from icebergds.io.aws_settings import AwsSettings, Role

__all__ = ["botocore_client"]


def botocore_client(settings: AwsSettings) -> Any:
    """The client for a service, shared by threads. Raises botocore's errors."""
    # One per process: a forked process must not use its parent's connections.
    return _client(os.getpid(), settings)


# Maximum number of concurrent connections; botocore's default is 10.
_CONNECTIONS = 32


@lru_cache(maxsize=32)
def _client(process: int, settings: AwsSettings) -> Any:
    session = Session(profile=settings.profile)
    if (keys := settings.keys) is not None:
        session.set_credentials(keys.key_id, keys.secret, keys.token)
    if settings.role is not None:
        session = _assuming(session, settings.role, settings)
    return session.create_client(
        settings.service,
        region_name=settings.region,
        endpoint_url=settings.endpoint,
        config=Config(
            retries={"max_attempts": settings.max_retries, "mode": settings.retry_mode},
            max_pool_connections=_CONNECTIONS,
        ),
    )


def _assuming(source: Session, role: Role, settings: AwsSettings) -> Session:
    """A session with the credentials of a role, which are renewed before they expire."""
    credentials = source.get_credentials()
    if credentials is None:
        raise NoCredentialsError()
    chosen = {
        "RoleSessionName": role.session_name,
        "ExternalId": role.external_id,
        "DurationSeconds": role.seconds,
        "Tags": [{"Key": key, "Value": value} for key, value in role.tags] or None,
    }

    def create_client(service: str, **arguments: Any) -> Any:
        return source.create_client(service, region_name=settings.region, **arguments)

    fetcher = AssumeRoleCredentialFetcher(
        create_client,
        credentials,
        role.arn,
        extra_args={name: value for name, value in chosen.items() if value is not None},
    )
    session = Session(profile=settings.profile)
    resolver = CredentialResolver([_RoleProvider(fetcher)])
    session.register_component("credential_provider", resolver)
    return session


class _RoleProvider(CredentialProvider):  # type: ignore[misc]
    METHOD = "assume-role"

    def __init__(self, fetcher: Any) -> None:
        super().__init__()
        self._fetcher = fetcher

    def load(self) -> Any:
        return DeferredRefreshableCredentials(self._fetcher.fetch_credentials, self.METHOD)
