"""Explains why a request to an AWS service failed, and what to do about it."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import (
    ClientError,
    ConnectionError as BotoConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.parsers import ResponseParserError

from icebergds.errors import InvalidOptionError, StorageError
from icebergds.io.aws_settings import AwsSettings

__all__ = ["error_code", "failure", "setup_failure", "shown_cause"]


def error_code(error: Exception) -> str:
    """The service's name of an error, such as `EntityNotFoundException`; empty for other errors."""
    return _answer(error).get("Code", "") if isinstance(error, ClientError) else ""


def failure(settings: AwsSettings, action: str, error: Exception) -> StorageError:
    """The error for a failed request.

    Args:
        action: the operation as the service names it, such as `GetTable`.
    """
    if isinstance(error, ClientError):
        # The request itself may be preceded by one that assumes a role.
        action = error.operation_name
    where = settings.endpoint or settings.region or ""
    place = f"{settings.service} ({where})" if where else settings.service
    what, remedy = _explained(settings, action, error)
    reason = f"catalog {settings.catalog}: {place} {what}: {_text(settings, error)}; {remedy}"
    return StorageError(reason, location=where)


def setup_failure(settings: AwsSettings, error: Exception) -> InvalidOptionError:
    """The error for settings that do not allow a client."""
    service = settings.service
    if isinstance(error, NoRegionError):
        hint = f"set {service}.region or client.region, or the variable AWS_DEFAULT_REGION"
    elif isinstance(error, ProfileNotFound):
        hint = f"check {service}.profile-name and client.profile-name"
    elif isinstance(error, NoCredentialsError | PartialCredentialsError):
        hint = _credentials(service)
    else:
        hint = f"check the properties {service}.* and client.*, and AWS's configuration files"
    return InvalidOptionError(f"catalog {settings.catalog}: {_text(settings, error)}; {hint}")


def shown_cause(settings: AwsSettings, error: Exception) -> Exception | None:
    """The error, if it may be printed in a traceback; None if it may contain a secret."""
    text = str(error)
    return error if text == _first_line(text) and text == _masked(settings, text) else None


_DENIED = ("AccessDenied", "AccessDeniedException", "ForbiddenException", "UnauthorizedOperation")
_EXPIRED = ("ExpiredToken", "ExpiredTokenException")
_UNKNOWN_KEY = (
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
)
# Statuses without a further explanation in the answer.
_UNEXPLAINED = ("401", "403")
_BUSY = (
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
)


def _explained(settings: AwsSettings, action: str, error: Exception) -> tuple[str, str]:
    """What happened, and what to do."""
    service, code = settings.service, error_code(error)
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError):
        return f"was not asked for {action}", _credentials(service)
    if isinstance(error, HTTPClientError | BotoConnectionError | ResponseParserError):
        if "WRONG_VERSION_NUMBER" in str(error):
            return (
                f"gave no valid answer to {action}",
                f"if the server does not speak TLS, begin {service}.endpoint with http://",
            )
        return (
            f"gave no valid answer to {action}",
            f"check {service}.endpoint and the region ({service}.region, client.region), and "
            "whether this machine may connect to it",
        )
    if not isinstance(error, ClientError):
        return f"cannot be asked for {action}", "check the arguments and the catalog's properties"
    if code in _DENIED:
        return f"refused {action}", (
            f"allow {service}:{action} to whom the credentials belong, or give others "
            f"({service}.profile-name, client.assume-role.arn)"
        )
    if code in _EXPIRED:
        return f"refused {action}", "renew the session token or leave static credentials out"
    keys = "check the access key, its secret and session token, and the region that they are for"
    if code in _UNKNOWN_KEY:
        return f"refused {action}", keys
    if code in _UNEXPLAINED:
        return f"refused {action}", f"{keys}; or allow {service}:{action} to whom they belong"
    if code in _BUSY:
        return f"refused {action}", f"try again later, or raise {service}.max-retries"
    return f"failed at {action}", "see the documentation of this error of AWS"


def _credentials(service: str) -> str:
    return (
        f"set {service}.access-key-id and {service}.secret-access-key, {service}.profile-name, or "
        "the like with client., or give what AWS's own tools use, such as the variables "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role of the machine"
    )


def _text(settings: AwsSettings, error: Exception) -> str:
    if not isinstance(error, ClientError):
        return _masked(settings, _first_line(str(error)))
    answer = _answer(error)
    message, code = _first_line(answer.get("Message") or ""), answer.get("Code", "")
    if not message or message.startswith("<"):
        return f"error {code}"
    return _masked(settings, f"{message} ({code})")


def _first_line(text: str) -> str:
    # After a wrong signature, the following lines quote the session token.
    return text.strip().partition("\n")[0].strip()


def _masked(settings: AwsSettings, text: str) -> str:
    for secret in settings.secrets():
        text = text.replace(secret, "***")
    return text


def _answer(error: ClientError) -> dict[str, Any]:
    found: dict[str, Any] = error.response.get("Error", {})
    return found
