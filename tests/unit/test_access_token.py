"""The token of the HTTP server is its owner's alone."""

from __future__ import annotations

import os
import stat

import pytest

from memory.access_token import TOKEN_NAME, access_token
from memory.errors import ConfigError


def test_a_token_is_made_once_for_its_owner_alone(tmp_path):
    data = tmp_path / "new"
    before = os.umask(0)
    try:
        token = access_token(data)
    finally:
        os.umask(before)

    assert len(token) >= 40
    assert access_token(data) == token
    assert stat.S_IMODE((data / TOKEN_NAME).stat().st_mode) == 0o600
    assert access_token(tmp_path / "other") != token


def test_a_token_of_ones_own_is_taken(tmp_path):
    (tmp_path / TOKEN_NAME).write_text("chosen-by-a-person-0001\n")
    (tmp_path / TOKEN_NAME).chmod(0o400)

    assert access_token(tmp_path) == "chosen-by-a-person-0001"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_token_that_others_may_read_is_refused(tmp_path, mode):
    token = access_token(tmp_path)
    (tmp_path / TOKEN_NAME).chmod(mode)

    with pytest.raises(ConfigError, match="others may read this token") as caught:
        access_token(tmp_path)
    assert token not in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n", "short", "a" * 30 + "\n" + "b" * 30, "\u00e9" * 30])
def test_what_is_no_token_is_refused(tmp_path, text):
    (tmp_path / TOKEN_NAME).write_text(text, encoding="utf-8")
    (tmp_path / TOKEN_NAME).chmod(0o600)

    with pytest.raises(ConfigError, match="holds no token"):
        access_token(tmp_path)


def test_a_link_and_a_pipe_are_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text("x" * 40)
    (tmp_path / TOKEN_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        access_token(tmp_path)

    (tmp_path / TOKEN_NAME).unlink()
    os.mkfifo(tmp_path / TOKEN_NAME, 0o600)
    with pytest.raises(ConfigError, match="holds no token"):
        access_token(tmp_path)
