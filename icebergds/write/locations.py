"""Chooses locations of new data files: directories by table properties, and unique names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mmh3

from icebergds.errors import InvalidOptionError, UnsupportedFeatureError
from icebergds.spec.manifest import FileContent, FileFormat
from icebergds.spec.partition import PartitionSpec, partition_path
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import (
    DATA_PATH,
    FOLDER_STORAGE_PATH,
    LOCATION_PROVIDER,
    OBJECT_STORAGE_ENABLED,
    OBJECT_STORAGE_PARTITIONED_PATHS,
    OBJECT_STORAGE_PATH,
    PY_LOCATION_PROVIDER,
)

IMPLEMENTATIONS = (LOCATION_PROVIDER.name, PY_LOCATION_PROVIDER.name)
# From the most to the least important; Java still reads the old names too.
_PATHS = (DATA_PATH.name, FOLDER_STORAGE_PATH.name)
_HASHED_PATHS = (DATA_PATH.name, OBJECT_STORAGE_PATH.name, FOLDER_STORAGE_PATH.name)
# The hash of a name in binary digits: three directories of 4 digits and one of 8.
_HASH_BITS = 20
_HASH_DIRECTORIES = (slice(0, 4), slice(4, 8), slice(8, 12), slice(12, 20))
# Most file systems limit names to this many bytes; names of partitions are ASCII.
_LONGEST_NAME = 255
_DIGEST_BYTES = 16
# One URL-encoded UTF-8 character.
_CHARACTER = re.compile(r"[^%]|%[0-7C-F][0-9A-F](?:%[89AB][0-9A-F])*")


@dataclass(frozen=True, slots=True)
class LocationProvider:
    """Chooses locations of a table's new data files, with Java Iceberg's layout.

    Unlike in Java, names of directories that are too long for a file system are shortened.

    Attributes:
        data_location: the directory of all data files, without a trailing slash.
        hashed: whether paths start with hash directories, to spread load in an object store.
        partitioned: whether paths include the partition.
        context: the last directories of the table's location; part of hashed paths outside of it.
    """

    data_location: str
    hashed: bool = False
    partitioned: bool = True
    context: str = ""

    @classmethod
    def of(cls, location: str, properties: Mapping[str, str]) -> LocationProvider:
        """The provider for a table's properties.

        Args:
            location: the table's location.
            properties: the table's properties.

        Raises:
            UnsupportedFeatureError: the table has a custom location provider.
            InvalidOptionError: a property is not a boolean, or not an absolute location.
        """
        for name in IMPLEMENTATIONS:
            if name in properties:
                raise UnsupportedFeatureError(
                    f"table property {name} = {properties[name]!r}: custom location providers are "
                    "not supported; unset the property to write to this table"
                )
        table = location.rstrip("/")
        hashed = OBJECT_STORAGE_ENABLED.of(properties)
        names = _HASHED_PATHS if hashed else _PATHS
        name = next((name for name in names if name in properties), DATA_PATH.name)
        chosen = properties.get(name, f"{table}/data")
        data_location = chosen.rstrip("/")
        if "://" not in data_location and not data_location.startswith(("/", "file:")):
            raise InvalidOptionError(
                f"property {name} is {chosen!r}, expected an absolute location, such as "
                f"{table}/data"
            )
        if not hashed:
            return cls(data_location)
        context = "" if data_location.startswith(table) else _last_directories(table)
        partitioned = OBJECT_STORAGE_PARTITIONED_PATHS.of(properties)
        return cls(data_location, True, partitioned, context)

    def location(
        self, name: str, spec: PartitionSpec, schema: Schema, partition: tuple[Any, ...]
    ) -> str:
        """The location of a file.

        Args:
            name: the file's name, unique in the table.
            spec: the file's partition spec.
            schema: the schema that the spec refers to.
            partition: the file's partition tuple.
        """
        if self.partitioned and not spec.is_unpartitioned:
            parts = partition_path(spec, schema, partition).split("/")
            name = "/".join([*map(_shortened, parts), name])
        if not self.hashed:
            return f"{self.data_location}/{name}"
        directories = _hash_directories(name)
        if self.context:
            return f"{self.data_location}/{directories}/{self.context}/{name}"
        return f"{self.data_location}/{directories}{'/' if self.partitioned else '-'}{name}"


@dataclass(frozen=True, slots=True)
class FileNames:
    """Names the files of one task attempt.

    Attributes:
        partition_id: the task's number in its job.
        attempt_id: unique among all attempts of a job.
        operation_id: globally unique id of the write.
    """

    partition_id: int
    attempt_id: int
    operation_id: str

    def name(
        self, count: int, file_format: FileFormat, content: FileContent = FileContent.DATA
    ) -> str:
        """The name of the attempt's `count`-th file."""
        suffix = "" if content is FileContent.DATA else "-deletes"
        return (
            f"{self.partition_id:05d}-{self.attempt_id}-{self.operation_id}-{count:05d}"
            f"{suffix}.{file_format}"
        )


def _shortened(directory: str) -> str:
    """A partition's directory; a name too long for a file system ends in a hash of the whole name.

    Readers take partition values from metadata, never from paths.
    """
    if len(directory) <= _LONGEST_NAME:
        return directory
    digest = hashlib.blake2b(directory.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    most = _LONGEST_NAME - len(digest) - 1
    # Scan a few more characters than fit, so that the last one that fits is not cut.
    ends = (found.end() for found in _CHARACTER.finditer(directory, 0, most + 12))
    return f"{directory[: max(end for end in ends if end <= most)]}-{digest}"


def _last_directories(location: str) -> str:
    _, scheme, rest = location.rpartition("://")
    path = rest.partition("/")[2] if scheme else rest
    return "/".join(path.strip("/").split("/")[-2:])


def _hash_directories(name: str) -> str:
    digits = f"{mmh3.hash(name.encode(), signed=False) & ((1 << _HASH_BITS) - 1):0{_HASH_BITS}b}"
    return "/".join(digits[part] for part in _HASH_DIRECTORIES)
