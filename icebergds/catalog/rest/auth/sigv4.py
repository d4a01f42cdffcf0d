"""Signs requests for AWS (Signature Version 4) with botocore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from icebergds.catalog.rest.auth.base import Authenticator, SignedRequest
from icebergds.errors import InvalidOptionError, StorageError

_DEFAULT_SERVICE = "execute-api"


class SigV4:
    """Signs requests (`Authenticator`).

    Args:
        catalog: the catalog's name in messages.
        properties: of the catalog: `rest.signing-name`, `rest.signing-region`, and keys; by default
            those that AWS's own tools use.
        delegate: authenticates requests before they are signed. Its header `Authorization` becomes
            `Original-Authorization`.

    Raises:
        InvalidOptionError: botocore is not installed, or there is no region.
    """

    def __init__(
        self, catalog: str, properties: Mapping[str, str], delegate: Authenticator
    ) -> None:
        try:
            from botocore.session import get_session
        except ImportError as error:
            raise InvalidOptionError(
                f"catalog {catalog}: signing requests for AWS needs botocore: pip install "
                "'icebergds[s3]'"
            ) from error
        self._catalog = catalog
        self._delegate = delegate
        self._service = properties.get("rest.signing-name") or _DEFAULT_SERVICE
        session = get_session()
        region = (
            properties.get("rest.signing-region")
            or properties.get("client.region")
            or session.get_config_variable("region")
        )
        if not region:
            raise InvalidOptionError(
                f"catalog {catalog}: signing requests for AWS needs a region: set "
                "rest.signing-region, such as us-east-1"
            )
        self._region: str = region
        self._keys: Any = _keys(properties) or session.get_credentials()
        if self._keys is None:
            raise InvalidOptionError(
                f"catalog {catalog}: there are no keys to sign requests for AWS with: set "
                "rest.access-key-id and rest.secret-access-key, or give what AWS's own tools use"
            )

    def current(self) -> str | None:
        return self._delegate.current()

    def sign(self, request: SignedRequest, current: str | None) -> SignedRequest:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        given = dict(self._delegate.sign(request, current).headers)
        if (original := given.pop("Authorization", None)) is not None:
            given["Original-Authorization"] = original
        # Proxies may change this header.
        unsigned = {name: given.pop(name) for name in ("User-Agent",) if name in given}
        to_sign = AWSRequest(request.method, request.url, headers=given, data=request.data)
        try:
            keys = self._keys.get_frozen_credentials()
        except Exception as error:
            raise StorageError(
                f"the keys of AWS could not be renewed: {type(error).__name__}"
            ) from None
        SigV4Auth(keys, self._service, self._region).add_auth(to_sign)
        return replace(request, headers={**unsigned, **dict(to_sign.headers.items())})

    def renew(self, refused: str | None) -> bool:
        return self._delegate.renew(refused)


def _keys(properties: Mapping[str, str]) -> Any:
    from botocore.credentials import Credentials

    for prefix in ("rest.", "client."):
        key = properties.get(prefix + "access-key-id")
        secret = properties.get(prefix + "secret-access-key")
        if key and secret:
            return Credentials(key, secret, properties.get(prefix + "session-token"))
    return None
