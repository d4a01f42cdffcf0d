"""A PostgreSQL server of the tests' own, in a directory that goes with it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg


@dataclass(frozen=True)
class PostgresServer:
    """A server on this machine that trusts everybody."""

    binaries: Path
    directory: Path
    port: int

    def new_database(self) -> str:
        """The name of a new, empty database."""
        name = f"db_{uuid.uuid4().hex}"
        with psycopg.connect(self._conninfo("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return name

    def uri(self, database: str, port: int | None = None) -> str:
        """The database's URI; by way of another port where one is given."""
        return f"postgresql+psycopg://tester@127.0.0.1:{port or self.port}/{database}"

    def connect(self, database: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self._conninfo(database))

    def start(self) -> None:
        options = f"-F -h 127.0.0.1 -p {self.port} -k {self.directory}"
        self._control("start", "-w", "-t", "60", "-l", f"{self.directory}/log", "-o", options)

    def stop(self) -> None:
        self._control("stop", "-m", "immediate")

    def _control(self, *arguments: str) -> None:
        _run(self.binaries / "pg_ctl", "-D", str(self.directory / "data"), *arguments)

    def _conninfo(self, database: str) -> str:
        return f"host=127.0.0.1 port={self.port} user=tester dbname={database}"


@contextmanager
def postgres_server(binaries: Path) -> Iterator[PostgresServer]:
    """Starts a server, and stops it in the end."""
    # Not pytest's directory, which others must not enter: the server does not run as root.
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        if (user := _user()) is not None:
            shutil.chown(directory, user)
        data = str(directory / "data")
        _run(binaries / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-N", "-E", "UTF8")
        server = PostgresServer(binaries, directory, _free_port())
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def find_binaries() -> Path | None:
    """The directory of initdb and pg_ctl, the newest if there are several."""
    installed = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    by_version = sorted(installed, key=lambda path: int(path.parts[-3].partition(".")[0]))
    on_path = shutil.which("initdb")
    found = [*([Path(on_path)] if on_path else []), *by_version]
    return found[-1].parent if found else None


def _user() -> str | None:
    """Whom to run as; None for the one who runs the tests."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _run(program: Path, *arguments: str) -> None:
    command: Sequence[str] = [str(program), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, user=_user(), cwd="/", check=False, timeout=120
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
