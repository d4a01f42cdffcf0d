"""Finds the data files at paths of files and folders, and the values that their folders name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote

from icebergds.errors import InvalidOptionError, MissingFileError
from icebergds.io.fileio import FileIO
from icebergds.io.threads import WAITING_THREADS
from icebergds.reporting import stage

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""The name that Hive and Spark give the folder of null."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to add.

    Attributes:
        size: in bytes, if it is known.
        path_values: the texts of its partition's values, such as those that the folders next to
            the file name: `day=2026-01-01/country=de`; None for null.
    """

    location: str
    size: int | None
    path_values: Mapping[str, str | None]


def source_files(io: FileIO, paths: Sequence[str]) -> list[SourceFile]:
    """The files at paths, each once and in order; all files below a folder that are not hidden.

    Names that begin with `_` or `.` are hidden, as for Spark, unless they name a value.

    Raises:
        MissingFileError: there is nothing at a path.
        InvalidOptionError: there are no files in any of the folders.
        StorageError: a folder cannot be listed.
    """
    if not paths:
        raise InvalidOptionError("file_paths is empty: expected paths of files or folders")
    for path in paths:
        if ".." in path.split("/"):
            raise InvalidOptionError(
                f"file_paths: {path} has '..' in it, which metadata cannot hold; give the path "
                "without it"
            )
    absolute = [_in_one_spelling(io.absolute(path)) for path in paths]
    with ThreadPoolExecutor(WAITING_THREADS) as pool:
        are_folders = list(pool.map(io.is_directory, absolute))
    found: dict[str, SourceFile] = {}
    with stage("list files"):
        for path, is_folder in zip(absolute, are_folders, strict=True):
            for location, size in _files_in(io, path) if is_folder else [_file_at(io, path)]:
                file = SourceFile(location, size, values_of(location))
                found.setdefault(io.locate(location), file)
    if not found:
        raise InvalidOptionError(
            f"file_paths: there are no files in {', '.join(paths[:3])}; names that begin with '_' "
            "or '.' are skipped"
        )
    return list(found.values())


def _in_one_spelling(path: str) -> str:
    """A local path without '.' and doubled slashes, so that a file has only one path."""
    mark = "file:" if path.startswith("file:") else ""
    rest = path.removeprefix(mark)
    if not rest.startswith("/"):
        return path
    slashes = rest[: len(rest) - len(rest.lstrip("/"))] if mark else "/"
    return mark + slashes + "/".join(part for part in rest.split("/") if part not in ("", "."))


def values_of(location: str) -> dict[str, str | None]:
    """The values that the folders next to a file name, up to the first that names none."""
    values: dict[str, str | None] = {}
    for folder in reversed(location.split("/")[:-1]):
        name, sign, text = folder.partition("=")
        if not sign or not name:
            break
        values.setdefault(unquote(name), None if text == NULL_FOLDER else unquote(text))
    return dict(reversed(values.items()))


def _files_in(io: FileIO, folder: str) -> Iterator[tuple[str, int | None]]:
    base = len(io.resolve(folder).rstrip("/")) + 1
    listed = (
        (location, size)
        for batch in io.list_recursively(folder)
        for location, size in _rows(batch.files.columns)
        if not any(map(_is_hidden, location[base:].split("/")))
    )
    return iter(sorted(listed))


def _rows(columns: Sequence[Iterable[object]]) -> Iterator[tuple[str, int | None]]:
    locations, _, sizes = columns
    for location, size in zip(locations, sizes, strict=True):
        yield location.as_py(), size.as_py()  # type: ignore[attr-defined]


def _file_at(io: FileIO, path: str) -> tuple[str, int | None]:
    if not io.exists(path):
        raise MissingFileError(f"{path}: there is no such file or folder to add")
    return path, None


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
