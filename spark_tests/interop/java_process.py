"""Java Iceberg in one process of its own, asked through pipes (`oracles.java_server`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oracles.canon import canonical_rows
from oracles.comparison import difference
from oracles.java_environment import JavaEnvironment

from icebergds import load_table
from icebergds.spec.json.schema import schema_to_json


class JavaProcess:
    """Commands of `oracles.java_server.Server`."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def ask(self, command: str, **arguments: Any) -> Any:
        """The answer to a command. Raises RuntimeError with Java's error where it fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"command": command, "arguments": arguments}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Java ended at {command}:\n{self._log.read_text()[-4000:]}")
        answer = json.loads(line)
        if "error" in answer:
            # What went wrong stands above hundreds of Java's stack frames.
            lines = answer["error"].splitlines()
            error = "\n".join(line for line in lines if not line.lstrip().startswith("at "))
            raise RuntimeError(f"{command} of {arguments.get('table')}:\n{error[-6000:]}")
        return answer["answer"]


def java_agrees(java: JavaProcess, location: str) -> int:
    """Checks that Java has the rows that we have of a table at a location; their number."""
    table = load_table(location)
    rows = table.scan().to_arrow()
    schema = schema_to_json(table.schema())
    problem = difference(
        java.ask("rows_at", location=location), canonical_rows(rows, schema), location
    )
    assert problem is None, problem
    return int(rows.num_rows)


@contextmanager
def java_process(
    environment: JavaEnvironment, directory: Path, *arguments: str
) -> Iterator[JavaProcess]:
    """Starts Java Iceberg; its Hadoop catalog is over `directory`/warehouse."""
    log = directory / "java.log"
    with (
        log.open("w") as errors,
        environment.start(
            "-m", "oracles.java_server", str(directory), *arguments, stderr=errors
        ) as process,
    ):
        yield JavaProcess(process, log)
        assert process.stdin is not None
        process.stdin.close()
