"""Gives clients of AWS the credentials of a role, which are renewed before they expire."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    """The credentials that assume a role; without any, those that AWS's own tools use."""

    key: str | None = None
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class AssumedRole:
    """A role and how it is assumed.

    Attributes:
        arn: of the role.
        source: who assumes it.
        region: of the token service; None for that of the environment.
        session_name: by which AWS's logs name the session.
        external_id: which the role may demand.
        duration_s: how long credentials hold; None for AWS's default, an hour.
        tags: names and values of the session's tags.
    """

    arn: str
    source: Source
    region: str | None
    session_name: str
    external_id: str | None
    duration_s: int | None
    tags: tuple[tuple[str, str], ...] = ()


def session_of_role(role: AssumedRole) -> Any:
    """A session of aiobotocore with the role's credentials; one for each role in a process."""
    return _session(role, os.getpid())


# fsspec keeps one client for equal options, and sessions are equal only to themselves. A fork of
# this process cannot wait for what a session of this one has begun.
@lru_cache(maxsize=32)
def _session(role: AssumedRole, _process: int) -> Any:
    from aiobotocore.session import AioSession

    session = AioSession()
    session.register_component("credential_provider", _RoleCredentials(role))
    return session


@dataclass(frozen=True, slots=True)
class _RoleCredentials:
    """What a session asks for its credentials."""

    role: AssumedRole

    async def load_credentials(self) -> Any:
        from aiobotocore.credentials import (
            AioAssumeRoleCredentialFetcher,
            AioCredentials,
            AioDeferredRefreshableCredentials,
        )
        from aiobotocore.session import AioSession
        from botocore.exceptions import NoCredentialsError

        role, source = self.role, self.role.source
        session = AioSession(profile=source.profile)
        if source.key and source.secret:
            credentials = AioCredentials(source.key, source.secret, source.token)
        else:
            credentials = await session.get_credentials()
        if credentials is None:
            raise NoCredentialsError()
        more = {
            "ExternalId": role.external_id,
            "DurationSeconds": role.duration_s,
            "Tags": [{"Key": name, "Value": value} for name, value in role.tags] or None,
        }
        fetcher = AioAssumeRoleCredentialFetcher(
            partial(session.create_client, region_name=role.region),
            credentials,
            role.arn,
            extra_args={
                "RoleSessionName": role.session_name,
                **{name: value for name, value in more.items() if value is not None},
            },
        )
        return AioDeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
