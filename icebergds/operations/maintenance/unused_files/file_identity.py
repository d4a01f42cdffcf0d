"""Compares locations of files by their paths, where schemes and authorities may be aliases.

One file has many locations: `/a/b`, `file:/a/b` and `file:///a//b`; `s3://b/k` and `s3a://b/k`; on
a local disk also paths through symbolic links. Only directories differ in that, never a file's last
name, so each directory is looked at once. Percent signs stand for themselves.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.io.fileio import FileIO
from icebergds.io.locations import EQUAL_SCHEMES, is_local, split_location

Prefix: TypeAlias = tuple[str, str]
"""A scheme and an authority, in lower case."""
Flags: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

_LOCAL = ("file", "")
_SLASHES = re.compile("/{2,}")
# A file name that no prefix of a location map ends in.
_ANY_NAME = "\x00"
_KEYS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class FileKeys:
    """Locations in a form that can be compared.

    Attributes:
        paths: without scheme and authority; one slash between names, no `.` and `..`.
        prefixes: scheme and authority of each location, as an index of `distinct`.
        distinct: the prefixes.
    """

    paths: pa.ChunkedArray
    prefixes: np.ndarray[tuple[int], np.dtype[np.int64]]
    distinct: tuple[Prefix, ...]


@dataclass(frozen=True, slots=True)
class Aliases:
    """Schemes and authorities that mean the same.

    Attributes:
        schemes: the scheme to use instead, by scheme.
        authorities: the authority to use instead, by authority.
    """

    schemes: Mapping[str, str] = field(default_factory=dict)
    authorities: Mapping[str, str] = field(default_factory=dict)

    def keys(self, locations: pa.StringArray | pa.ChunkedArray, io: FileIO) -> FileKeys:
        """The locations' keys, without access to remote storage.

        Args:
            locations: as in metadata, or resolved ones.
            io: maps and resolves them.

        Raises:
            InvalidOptionError: a `file:` location is on another machine.
        """
        chunks = locations.chunks if isinstance(locations, pa.ChunkedArray) else [locations]
        known: dict[Prefix, int] = {}
        real: dict[str, str] = {}
        # Intermediate results take as much memory as locations and keys together.
        found = [
            self._keys_of(chunk[start : start + _KEYS_AT_ONCE], io, known, real)
            for chunk in chunks
            for start in range(0, len(chunk), _KEYS_AT_ONCE)
        ]
        return FileKeys(
            pa.chunked_array([paths for paths, _ in found], pa.string()),
            np.concatenate([np.empty(0, np.int64), *(prefixes for _, prefixes in found)]),
            tuple(known),
        )

    def _keys_of(
        self, locations: pa.StringArray, io: FileIO, known: dict[Prefix, int], real: dict[str, str]
    ) -> tuple[pa.StringArray, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """The paths and prefixes of some locations; new prefixes are added to the known ones."""
        directories = pc.replace_substring_regex(locations, "[^/]*$", "")
        names = pc.replace_substring_regex(locations, "(?s)^.*/", "")
        encoded = directories.dictionary_encode()
        indices, paths = [], []
        for directory in encoded.dictionary.to_pylist():
            prefix, path = self._of_located(
                io.locate(directory + _ANY_NAME)[: -len(_ANY_NAME)], real
            )
            indices.append(known.setdefault(prefix, len(known)))
            paths.append(path)
        at = encoded.indices.to_numpy(zero_copy_only=False)
        prefixes = np.array(indices, np.int64)[at]
        found = pc.binary_join_element_wise(pa.array(paths, pa.string()).take(at), names, "")
        # The map may name single files, too.
        mapped = pc.is_in(locations, pa.array(list(io.location_map), pa.string()))
        if pc.any(mapped).as_py():
            single = []
            for row in np.flatnonzero(mapped.to_numpy(zero_copy_only=False)):
                directory, slash, name = io.locate(locations[row].as_py()).rpartition("/")
                prefix, path = self._of_located(directory + slash, real)
                prefixes[row] = known.setdefault(prefix, len(known))
                single.append(path + name)
            found = pc.replace_with_mask(found, mapped, pa.array(single, pa.string()))
        return found, prefixes

    def directory(self, location: str, io: FileIO) -> tuple[Prefix, str]:
        """The prefix and the path of a directory; the path ends in a slash."""
        return self._of_located(f"{io.locate(location).rstrip('/')}/", {})

    def _of_located(self, located: str, real: dict[str, str]) -> tuple[Prefix, str]:
        if is_local(located):
            return _LOCAL, f"{_real(_SLASHES.sub('/', located).rstrip('/'), real)}/"
        scheme, authority, path = split_location(located)
        scheme = self.schemes.get(scheme, scheme)
        scheme = EQUAL_SCHEMES.get(scheme, scheme)
        authority = authority.lower()
        authority = self.authorities.get(authority, authority)
        path = _SLASHES.sub("/", path if path.startswith("/") else f"/{path}")
        if "/." in path:
            # Hadoop follows them; for a file whose name has them, this is only more cautious.
            path = _SLASHES.sub("/", f"{posixpath.normpath(path)}/")
        return (scheme, authority), path


@dataclass(frozen=True, slots=True)
class Matches:
    """Which files are referenced; each attribute but the last has a flag for every file.

    Attributes:
        referenced: some location refers to the file.
        elsewhere: locations refer to its path, but all in another storage.
        conflicts: a referenced and a found prefix, and a path of both, for each such pair.
    """

    referenced: Flags
    elsewhere: Flags
    conflicts: Mapping[tuple[Prefix, Prefix], str]


def match_files(
    files: FileKeys, referenced: Iterable[pa.StringArray], aliases: Aliases, io: FileIO
) -> Matches:
    """Looks up files among the locations that a table refers to.

    Args:
        referenced: locations as in metadata, in parts; not all of them are in memory at once.
        io: maps and resolves these locations.
    """
    by_path = np.zeros(len(files.paths), bool)
    by_prefix = np.zeros(len(files.paths), bool)
    pairs: dict[tuple[Prefix, Prefix], Flags] = {}
    for part in _gathered(referenced):
        keys = aliases.keys(part, io)
        for number, prefix in enumerate(keys.distinct):
            paths = keys.paths.filter(pa.array(keys.prefixes == number))
            hits = pc.is_in(files.paths, paths).to_numpy(zero_copy_only=False)
            by_path |= hits
            for at, found in enumerate(files.distinct):
                here = hits & (files.prefixes == at)
                if _is_same_storage(prefix, found):
                    by_prefix |= here
                elif here.any():
                    pair = (prefix, found)
                    pairs[pair] = pairs[pair] | here if pair in pairs else here
    elsewhere = by_path & ~by_prefix
    conflicts = {
        pair: files.paths[int(np.flatnonzero(rows & elsewhere)[0])].as_py()
        for pair, rows in pairs.items()
        if (rows & elsewhere).any()
    }
    return Matches(by_prefix, elsewhere, conflicts)


def _real(path: str, known: dict[str, str]) -> str:
    """A local directory with symbolic links resolved; each directory above is checked once."""
    if not path:
        return ""
    if path not in known:
        if "/." in path:
            return os.path.realpath(path).rstrip("/")
        above, _, name = path.rpartition("/")
        here = f"{_real(above, known)}/{name}"
        known[path] = os.path.realpath(here).rstrip("/") if os.path.islink(here) else here
    return known[path]


# How many locations are looked up at once: each time, a hash table is built of them, and all files
# are looked at.
_PART_ROWS = 1 << 18


def _gathered(parts: Iterable[pa.StringArray]) -> Iterator[pa.ChunkedArray]:
    """Combines many small parts into a few large ones."""
    held: list[pa.StringArray] = []
    rows = 0
    for part in parts:
        held.append(part)
        rows += len(part)
        if rows >= _PART_ROWS:
            yield pa.chunked_array(held, pa.string())
            held, rows = [], 0
    if held:
        yield pa.chunked_array(held, pa.string())


def _is_same_storage(referenced: Prefix, found: Prefix) -> bool:
    """Whether a file found at a path is the one that a location with that path refers to."""
    # As in Java: a location without an authority is in the default one.
    return referenced[0] == found[0] and referenced[1] in ("", found[1])
