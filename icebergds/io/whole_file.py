"""Writes a local file that is there only if it is whole, such as a report or an export."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that replaces another one, or appears, at the end of the block.

    Links and permissions stay, and so does what is no file: devices and pipes are written to as
    they are.

    Raises:
        OSError: the file cannot be written; it is as it was.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    part = path.with_name(f".{uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            if path.exists():
                shutil.copymode(path, part)
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
