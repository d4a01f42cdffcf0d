"""Processes that write to one table at the same time lose no commit and double none."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.api_tables import catalog_in, create_table, ids_of, open_table
from built.contents import history, metadata_files, unused_files
from effort import IS_NIGHTLY, scaled
from postgres_server import PostgresServer
from race_writers import (
    PATIENT,
    add_columns,
    append,
    append_to_branch,
    fast_append,
    id_of,
    race,
    replace_day,
)

_WRITERS, _COMMITS = (8, 50) if IS_NIGHTLY else (4, 12)


@pytest.fixture(params=["filesystem", "sqlite", "postgresql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Properties of a catalog of each kind."""
    match request.param:
        case "filesystem":
            return catalog_in(tmp_path)
        case "sqlite":
            return catalog_in(tmp_path, f"sqlite:///{tmp_path}/catalog.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return catalog_in(tmp_path, server.uri(server.new_database()))


def test_no_append_of_many_processes_is_lost_or_doubled(catalog: dict[str, str]) -> None:
    create_table(catalog, **PATIENT)
    # With the rows' whole way where it is cheap enough for so many.
    write = fast_append if "uri" in catalog else append
    race([write] * _WRITERS, _COMMITS, catalog)
    table = open_table(catalog)
    written = [id_of(writer, n) for writer in range(_WRITERS) for n in range(_COMMITS)]
    assert ids_of(table) == written
    snapshots = table.snapshots()
    assert [s.sequence_number for s in snapshots] == list(range(1, len(written) + 1))
    assert history(table) == list(snapshots)
    totals = snapshots[-1].summary
    assert totals["total-records"] == totals["total-data-files"] == str(len(written))
    assert unused_files(table) == set()
    assert len(metadata_files(table.location())) == 1 + len(written)


def test_commits_of_all_kinds_go_together(tmp_path: Path) -> None:
    catalog = catalog_in(tmp_path)
    create_table(catalog, partition_by="day", **PATIENT)
    writers = [append, append, append_to_branch, append_to_branch, add_columns, add_columns]
    commits = scaled(15)
    race([*writers, replace_day, replace_day], commits, catalog)
    table = open_table(catalog)
    # The last row of each day that was replaced, and all others.
    of_main = [id_of(w, n) for w in (0, 1, 4, 5) for n in range(commits)]
    of_main += [id_of(w, commits - 1) for w in (6, 7)]
    assert ids_of(table) == of_main
    of_branch = [i for i in ids_of(table, branch="work") if i // 1000 in (2, 3)]
    assert of_branch == [id_of(w, n) for w in (2, 3) for n in range(commits)]
    columns = {f"c{w}_{n}" for w in (4, 5) for n in range(commits)}
    assert {field.name for field in table.schema().fields} == {"id", "day", "name"} | columns
    values = table.scan("day = 5").to_arrow().to_pylist()
    assert all(row[f"c5_{row['id'] % 1000}"] == row["id"] % 1000 for row in values)
    snapshots = table.snapshots()
    assert [s.sequence_number for s in snapshots] == list(range(1, 8 * commits + 1))
    main, work = history(table), history(table, "work")
    forked = [s for s in work if s in main]
    assert len(main) == 6 * commits
    assert work[: len(forked)] == main[: len(forked)]
    assert len(work) == len(forked) + 2 * commits
    assert main[-1].summary["total-records"] == str(len(of_main))
    assert unused_files(table) == set()
