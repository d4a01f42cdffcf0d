"""Reports scans and commits to the server (REST catalog specification: `ReportMetricsRequest`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from icebergds.catalog.base import Identifier
from icebergds.catalog.rest.config import METRICS
from icebergds.catalog.rest.http import Request
from icebergds.catalog.rest.options import flag
from icebergds.catalog.rest.session import RestSession
from icebergds.metrics import MetricsReport

_LOG = logging.getLogger(__name__)

# Further reports are dropped while this many are being sent.
_WAITING = threading.BoundedSemaphore(4)


@dataclass(frozen=True, slots=True)
class RestReporter:
    """Implements `ServerReporter`; other processes, which have no session, get None.

    Attributes:
        name: the table's name in messages.
    """

    session: RestSession = field(repr=False)
    identifier: Identifier
    name: str

    def report(self, made: Callable[[], MetricsReport]) -> None:
        """Implements `ServerReporter.report`."""
        _send(self.session, self.identifier, self.name, lambda: made().to_json())

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


def server_reporter(session: RestSession, identifier: Identifier, name: str) -> RestReporter | None:
    """Reports what is done to a table to the server; None if reporting is off."""
    return RestReporter(session, identifier, name) if _is_told(session) else None


def _is_told(session: RestSession) -> bool:
    key = "rest-metrics-reporting-enabled"
    enabled = flag(session.name, session.config.properties, key, True)
    return enabled and session.config.supports(session.name, METRICS)


def _send(
    session: RestSession, identifier: Identifier, name: str, report: Callable[[], dict[str, Any]]
) -> None:
    def send() -> None:
        try:
            path = session.routes.metrics(identifier)
            # A server may refuse only reports, and other requests would wait for a new token.
            request = Request("POST", path, body=report(), answered=False, renews=False)
            session.client.send(request)
        except Exception as error:
            _LOG.info("table %s: the server did not take a report: %s", name, error)
        finally:
            _WAITING.release()

    # The process does not wait for it at exit.
    if not _WAITING.acquire(blocking=False):
        return
    try:
        threading.Thread(target=send, name="icebergds-metrics", daemon=True).start()
    except RuntimeError as error:
        # The process cannot start further threads.
        _WAITING.release()
        _LOG.info("table %s: nothing is reported: %s", name, error)
