"""Whatever happens to the structure of a table's files, a read gives its rows or notices."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.commit_tables import SCHEMA, CommitTable, create_table, open_table
from built.damage import (
    double_block,
    drop_block,
    into_small_blocks,
    split_avro,
    swap_files,
)
from built.data_files import write_file
from built.replace_files import ReplaceFiles
from built.rows import arrow_table
from effort import rounds

import icebergds
from icebergds.commit.data_files import Append
from icebergds.commit.row_delta import RowDelta
from icebergds.errors import IcebergError
from icebergds.formats.deletes.deletion_vector import encode_deletion_vector
from icebergds.formats.deletes.positions import PositionSet
from icebergds.formats.puffin import NewBlob, encode_puffin
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS, POS
from icebergds.spec.schema import Schema

FORMATS = [FileFormat.PARQUET, FileFormat.AVRO, FileFormat.ORC]
DELETES = Schema((DELETE_FILE_PATH, DELETE_POS))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("version", [2, 3])
def test_a_mutated_table_gives_its_rows_or_notices(
    tmp_path: Path,
    version: int,
    kind: FileFormat,
    rng: random.Random,
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = tmp_path / "whole"
    expected = a_table(tmp_path / "t", version, kind)
    shutil.copytree(tmp_path / "t", whole)
    caplog.set_level(logging.WARNING, "icebergds")
    noticed = 0
    for _ in range(rounds("ICEBERGDS_MUTATIONS", pull=16, nightly=1000)):
        shutil.rmtree(tmp_path / "t")
        shutil.copytree(whole, tmp_path / "t")
        caplog.clear()
        what = mutate(tmp_path / "t", rng)
        try:
            found = ids(tmp_path / "t", {"split-size": rng.choice(["100", "1000000"])})
        except IcebergError:
            noticed += 1
            continue
        # That a manifest list lost a part of its manifests is only a warning.
        assert found == expected or ("snap-" in what and caplog.records), what
    assert noticed


def mutate(root: Path, rng: random.Random) -> str:
    """Changes a file in one way; returns what was done."""
    metadata = open_table(root).metadata
    snapshot = metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    files = [*root.glob("data/*"), *root.glob("metadata/*-m0.avro"), Path(snapshot.manifest_list)]
    file = rng.choice(sorted(files))
    alike = [f for f in files if f.suffix == file.suffix and f.parent == file.parent and f != file]
    ways: list[Callable[[], Any]] = [
        lambda: cut(file, rng.randrange(file.stat().st_size)),
        lambda: file.write_bytes(file.read_bytes() + rng.randbytes(rng.choice([1, 16, 300]))),
    ]
    if file.suffix == ".avro":
        header, blocks = split_avro(file.read_bytes())
        number = rng.randrange(len(blocks))
        kept = len(header) + sum(map(len, blocks[:number]))
        ways += [
            lambda: drop_block(file, number),
            lambda: double_block(file, number),
            lambda: cut(file, kept),
        ]
    if alike:
        ways.append(lambda: swap_files(file, rng.choice(sorted(alike))))
    way = rng.randrange(len(ways))
    ways[way]()
    return f"way {way} of {len(ways)} for {file}"


def cut(file: Path, length: int) -> None:
    file.write_bytes(file.read_bytes()[:length])


def a_table(root: Path, version: int, kind: FileFormat) -> list[int]:
    """A table of several manifests, with deletes and removed files; returns its ids."""
    table = create_table(root, spec=PartitionSpec(), format_version=version)
    # No two files have the same number of rows, so that they cannot be taken for each other.
    sizes = [range(3), range(10, 15), range(20, 31), range(40, 60)]
    files = [a_file(table, list(numbers), kind) for numbers in sizes]
    table.commit(Append(tuple(files[:2])))
    table.commit(Append(tuple(files[2:])))
    table.commit(ReplaceFiles((files[0],), (), table.head.snapshot_id))
    deleted = {files[1].file_path: [0, 4], files[2].file_path: [1, 2, 5]}
    write = position_deletes if version == 2 else vectors
    table.commit(RowDelta((), write(table, deleted, kind)))
    for manifest in table.manifests():
        into_small_blocks(manifest.manifest_path)
    into_small_blocks(table.head.manifest_list or "")
    expected = [11, 12, 13, 20, 23, 24, *range(26, 31), *range(40, 60)]
    assert ids(root, {}) == expected
    return expected


def a_file(table: CommitTable, numbers: list[int], kind: FileFormat) -> DataFile:
    path = table.location / "data" / f"{numbers[0]}.{kind}"
    batches = arrow_table(SCHEMA, [(i, 0) for i in numbers]).to_batches()
    return in_blocks(write_file(path, SCHEMA, batches, file_format=kind))


def position_deletes(
    table: CommitTable, deleted: dict[str, list[int]], kind: FileFormat
) -> tuple[DataFile, ...]:
    found = []
    for number, (path, positions) in enumerate(deleted.items()):
        location = table.location / "data" / f"deletes-{number}.{kind}"
        batches = arrow_table(DELETES, [(path, position) for position in positions]).to_batches()
        content = FileContent.POSITION_DELETES
        file = write_file(location, DELETES, batches, file_format=kind, content=content)
        found.append(in_blocks(file))
    return tuple(found)


def vectors(
    table: CommitTable, deleted: dict[str, list[int]], _: FileFormat
) -> tuple[DataFile, ...]:
    found = []
    for number, (path, positions) in enumerate(deleted.items()):
        blob = NewBlob(
            "deletion-vector-v1",
            (POS.field_id,),
            encode_deletion_vector(PositionSet.of(positions)),
            properties={"referenced-data-file": path, "cardinality": str(len(positions))},
        )
        data, (placed,) = encode_puffin([blob])
        location = table.location / "data" / f"{number}.puffin"
        location.write_bytes(data)
        found.append(
            DataFile(
                FileContent.POSITION_DELETES,
                str(location),
                FileFormat.PUFFIN,
                0,
                (),
                len(positions),
                len(data),
                referenced_data_file=path,
                content_offset=placed.offset,
                content_size_in_bytes=placed.length,
            )
        )
    return tuple(found)


def in_blocks(file: DataFile) -> DataFile:
    """An Avro file with a block for each row."""
    if file.file_format is not FileFormat.AVRO:
        return file
    into_small_blocks(file.file_path)
    return replace(file, file_size_in_bytes=Path(file.file_path).stat().st_size)


def ids(root: Path, options: dict[str, str]) -> list[int]:
    table = icebergds.load_table(str(root))
    # Deletes are cached by path and size, and mutations may change neither.
    options = {**options, "delete-cache-bytes": "0"}
    found: list[int] = table.scan(columns="id", options=options).to_arrow()["id"].to_pylist()
    return sorted(found)
