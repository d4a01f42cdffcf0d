"""Short names of data files."""

from __future__ import annotations

import pytest

from icebergds.formats.file_tokens import file_token, is_marked, marked_path


def test_tokens_are_short_and_tell_paths_apart() -> None:
    paths = [
        f"s3://bucket/db/t/data/day={day}/part-{part}.parquet"
        for day in range(30)
        for part in range(100)
    ]
    tokens = {file_token(path) for path in paths}
    assert len(tokens) == len(paths)
    assert {len(token) for token in tokens} == {12}


def test_token_is_the_same_in_every_process() -> None:
    assert file_token("file:///t/a.parquet") == "hJdQvFXp0W1S"


@pytest.mark.parametrize(
    ("path", "start", "end"),
    [
        ("/t/data/00000-0-ab-00001.parquet", "/t/data/00000-0-ab-00001-", ".parquet"),
        ("s3://b/t/d-deletes.parquet", "s3://b/t/d-", "-deletes.parquet"),
    ],
)
def test_a_marked_path_is_known_where_it_is_alone(path: str, start: str, end: str) -> None:
    marked = marked_path(path)
    assert marked.startswith(start)
    assert marked.endswith(end)
    assert is_marked(marked)
    assert not is_marked(path)
    assert not is_marked(marked.replace("t/d", "t/e/d"))
    assert not is_marked(marked.replace(".parquet", ".orc"))
