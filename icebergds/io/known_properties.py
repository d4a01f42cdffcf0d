"""Names the properties of storages, to warn of misspelt ones, which would have no effect."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import lru_cache

from icebergds.io.storage_options import STORAGE_PREFIXES
from icebergds.suggestions import did_you_mean

__all__ = ["is_known", "warn_of_names"]

_LOG = logging.getLogger(__name__)


def warn_of_names(properties: Iterable[str]) -> None:
    """Warns of each property of a storage that is not known, but nearly: once in a process."""
    for name in properties:
        if name.startswith(STORAGE_PREFIXES):
            _warn(name)


def is_known(name: str) -> bool:
    """Whether a property of a storage has an effect."""
    return name in _NAMES or name.startswith(_OPEN)


@lru_cache(maxsize=1024)
def _warn(name: str) -> None:
    if is_known(name) or name in _OF_OTHERS:
        return
    if near := did_you_mean(name, _NAMES, closeness=0.85):
        _LOG.warning("property %r of the storage is unknown and has no effect; %s", name, near)


_KEYS = ("access-key-id", "secret-access-key", "session-token", "profile-name", "role-arn")
_NAMES = frozenset(
    {
        *(f"{prefix}.{name}" for prefix in ("s3", "client") for name in _KEYS),
        "s3.endpoint",
        "s3.region",
        "s3.role-session-name",
        "s3.anonymous",
        "s3.requester-pays",
        "s3.path-style-access",
        "s3.force-virtual-addressing",
        "s3.acceleration-enabled",
        "s3.dualstack-enabled",
        "s3.sse.type",
        "s3.sse.key",
        "s3.sse-kms-key-id",
        "s3.server-side-encryption",
        "s3.acl",
        "s3.write.storage-class",
        "s3.proxy-uri",
        "s3.connect-timeout",
        "s3.request-timeout",
        "s3.retry.num-retries",
        "s3.remote-signing-enabled",
        "s3.signer.endpoint",
        "s3.signer.uri",
        "client.region",
        "client.role-session-name",
        "client.assume-role.arn",
        "client.assume-role.region",
        "client.assume-role.session-name",
        "client.assume-role.external-id",
        "client.assume-role.timeout-sec",
        "client.refresh-credentials-endpoint",
        "gcs.project-id",
        "gcs.oauth2.token",
        "gcs.oauth2.token-expires-at",
        "gcs.oauth2.refresh-credentials-endpoint",
        "gcs.no-auth",
        "gcs.service.host",
        "gcs.endpoint",
        "gcs.user-project",
        "gcs.requester-pays",
        "adls.account-name",
        "adls.account-key",
        "adls.auth.shared-key.account.name",
        "adls.auth.shared-key.account.key",
        "adls.sas-token",
        "adls.connection-string",
        "adls.token",
        "adls.tenant-id",
        "adls.client-id",
        "adls.client-secret",
        "adls.anon",
        "adls.account-host",
        "adls.blob-storage-scheme",
        "adls.blob-storage-authority",
        "adls.refresh-credentials-endpoint",
        "hdfs.user",
        "hdfs.host",
        "hdfs.port",
        "hdfs.kerberos_ticket",
    }
)
_OPEN = (
    "s3.write.tags.",
    "client.assume-role.tags.",
    "adls.sas-token.",
    "adls.connection-string.",
)
# Of Java Iceberg and PyIceberg, and near the names above.
_OF_OTHERS = frozenset(
    {
        "adls.dfs-storage-authority",
        "adls.dfs-storage-scheme",
        "adls.refresh-credentials-enabled",
        "client.refresh-credentials-enabled",
        "gcs.oauth2.refresh-credentials-enabled",
    }
)
