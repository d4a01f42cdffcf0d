"""Short names of data files."""

from __future__ import annotations

from icebergds.formats.file_tokens import file_token


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
