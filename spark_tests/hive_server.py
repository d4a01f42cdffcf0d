"""Hive Metastores of the tests' own, on PostgreSQL; `.ci/servers.sh` fetches their jars."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from postgres_server import PostgresServer
from server_process import QUICK_JVM, free_ports, listens, running

LOCKING = "3.1.3"
"""A version that ignores the expected parameter of an alteration: only its locks exclude others."""
CONDITIONAL = "4.0.1"
"""A version that alters a table only if a parameter has the expected value."""

_CACHE = Path(__file__).resolve().parents[1] / ".cache/hive"
_CLASS = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %5p [%t] %c{2}: %m%n
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
"""


@dataclass(frozen=True)
class HiveServer:
    """A metastore on this machine that lets everybody in.

    Attributes:
        database: its own, in PostgreSQL.
    """

    version: str
    port: int
    directory: Path
    database: str

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def warehouse(self) -> Path:
        """Where the metastore puts databases that are created without a location."""
        return self.directory / "warehouse"

    def log(self) -> str:
        return (self.directory / "log").read_text()


def what_is_missing(version: str) -> str | None:
    """What a server needs and is not there."""
    if shutil.which("java") is None:
        return "a JDK (17 or later) is not installed"
    if not (_CACHE / version / "schema.sql").exists():
        return f"Hive {version} is not there; run .ci/servers.sh"
    return None


@contextmanager
def hive_server(
    version: str,
    postgres: PostgresServer,
    *,
    settings: Mapping[str, str] = MappingProxyType({}),
    jvm_options: Sequence[str] = (),
) -> Iterator[HiveServer]:
    """Starts a metastore with a database of its own, and stops it in the end.

    Args:
        settings: of the metastore and of Hadoop, beside those that every test needs.
    """
    directory = Path(tempfile.mkdtemp(prefix="hive-"))
    try:
        server = HiveServer(version, free_ports(1)[0], directory, _new_database(version, postgres))
        _configure(server, postgres.port, settings)
        with running(_command(server, jvm_options), directory, listens(server.port)):
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _new_database(version: str, postgres: PostgresServer) -> str:
    database = postgres.new_database()
    with postgres.connect(database) as connection:
        connection.execute((_CACHE / version / "schema.sql").read_bytes())
    return database


def _configure(server: HiveServer, postgres_port: int, others: Mapping[str, str]) -> None:
    url = f"jdbc:postgresql://127.0.0.1:{postgres_port}/{server.database}"
    settings = {
        "javax.jdo.option.ConnectionURL": url,
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": "tester",
        "javax.jdo.option.ConnectionPassword": "unused",
        "metastore.warehouse.dir": f"file:{server.warehouse}",
        "metastore.thrift.bind.host": "127.0.0.1",
        "metastore.event.db.notification.api.auth": "false",
        # The default class is of the part of Hive that runs queries.
        "metastore.expression.proxy": (
            "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy"
        ),
        "metastore.task.threads.always": (
            "org.apache.hadoop.hive.metastore.events.EventCleanerTask"
        ),
        # True by default, which forbids some of Iceberg's changes of schemas.
        "metastore.disallow.incompatible.col.type.changes": str(server.version == LOCKING).lower(),
        # Two creations at once fail in the database, and are tried again after 2 s by default.
        "metastore.hmshandler.retry.interval": "100ms",
    }
    for name, given in ("metastore-site.xml", {**settings, **others}), ("core-site.xml", others):
        (server.directory / name).write_text(_site(given))
    (server.directory / "log4j2.properties").write_text(_LOGGING)


def _site(settings: Mapping[str, str]) -> str:
    properties = "\n".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    return f"<configuration>\n{properties}\n</configuration>\n"


def _command(server: HiveServer, options: Sequence[str]) -> list[str]:
    class_path = f"{server.directory}:{_CACHE / server.version}/lib/*"
    jvm = ["java", *QUICK_JVM, "-Xmx512m", *options, "-cp", class_path]
    return [*jvm, _CLASS, "-p", str(server.port)]
