"""A server with AWS's Glue, DynamoDB, S3 Tables and S3, for tests of catalogs.

Run as a script, it is the server. Requests are carried out one at a time, as if they were atomic.
Glue has what moto lacks: the optimistic lock by a change's `VersionId`, and federated databases.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from server_process import free_ports, running


@dataclass(frozen=True)
class MotoServer:
    """A server on this machine that believes every access key."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reset(self) -> None:
        """Forgets all data."""
        request = urllib.request.Request(f"{self.endpoint}/moto-api/reset", method="POST")
        urllib.request.urlopen(request, timeout=30).close()

    def properties(self, service: str, endpoint: str | None = None) -> dict[str, str]:
        """Properties of a catalog.

        Args:
            endpoint: of a proxy.
        """
        return {
            "type": service,
            f"{service}.endpoint": endpoint or self.endpoint,
            f"{service}.region": REGION,
            f"{service}.access-key-id": "tester",
            f"{service}.secret-access-key": "secret",
        }

    @property
    def s3_properties(self) -> dict[str, str]:
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": REGION,
            "s3.access-key-id": "tester",
            "s3.secret-access-key": "secret",
            "s3.path-style-access": "true",
        }

    def s3_tables_properties(self) -> dict[str, str]:
        """Properties of a catalog of a new table bucket of S3 Tables."""
        name = f"tables-{uuid.uuid4()}"
        bucket = self.client("s3tables").create_table_bucket(name=name)
        return self.properties("s3tables") | self.s3_properties | {"warehouse": bucket["arn"]}

    def client(self, service: str) -> Any:
        """A client of botocore, to do things behind a catalog's back."""
        from botocore.session import Session

        session = Session()
        session.set_credentials("tester", "secret")
        return session.create_client(service, region_name=REGION, endpoint_url=self.endpoint)


REGION = "us-east-1"


def has_moto() -> bool:
    return find_spec("moto") is not None and find_spec("flask") is not None


@contextmanager
def moto_server(**environment: str) -> Iterator[MotoServer]:
    """Starts a server, and stops it in the end.

    Args:
        environment: variables of moto, such as INITIAL_NO_AUTH_ACTION_COUNT.
    """
    server = MotoServer(*free_ports(1))
    command = [sys.executable, __file__, server.port]
    with (
        tempfile.TemporaryDirectory(prefix="moto-") as directory,
        running(command, Path(directory), server.reset, environment=environment),
    ):
        yield server


def _serve(port: int) -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, run_simple

    _lock_glue()
    _keep_federations()
    lock = threading.Lock()
    dispatch = DomainDispatcherApplication(create_backend_app)

    def one_at_a_time(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with lock:
            return dispatch(environ, start)

    WSGIRequestHandler.protocol_version = "HTTP/1.1"
    run_simple("127.0.0.1", port, one_at_a_time, threaded=True)


def _lock_glue() -> None:
    """Gives Glue's UpdateTable its optimistic lock."""
    from moto.core.exceptions import JsonRESTError
    from moto.glue.responses import GlueResponse

    update = GlueResponse.update_table

    def update_if_unchanged(self: Any) -> Any:
        expected = self.parameters.get("VersionId")
        name = self.parameters["TableInput"]["Name"]
        table = self.glue_backend.get_table(self.parameters["DatabaseName"], name)
        if expected not in (None, table.as_dict()["VersionId"]):
            raise JsonRESTError(
                "ConcurrentModificationException",
                "Update table failed due to concurrent modifications.",
            )
        return update(self)

    GlueResponse.update_table = update_if_unchanged


def _keep_federations() -> None:
    """Makes databases of Glue keep what they are federated with."""
    from moto.glue.models import FakeDatabase

    plain = FakeDatabase.as_dict

    def with_federation(self: Any) -> dict[str, Any]:
        return {**plain(self), "FederatedDatabase": self.input.get("FederatedDatabase")}

    FakeDatabase.as_dict = with_federation


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
