"""``memory save`` from argv to exit code, in this process."""

from __future__ import annotations

import io
import json
import sys

import pytest

from memory.cli import main
from memory.tools import MAX_SAVE_CHARACTERS
from tests.unit.fake_daemon import fake_daemon


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMORY_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def daemon(home):
    with fake_daemon(home / "data" / "memory") as daemon:
        yield daemon


RECEIPT = {"event_id": "e1", "state": "queued"}


def test_a_fact_is_queued(daemon, capsys):
    daemon.will_answer(RECEIPT)

    assert main(["save", "Alice likes tea."]) == 0
    assert capsys.readouterr().out == "memory: queued (event e1)\n"
    assert daemon.requests == [{"command": "save", "content": "Alice likes tea."}]


def test_a_fact_that_no_run_can_file_is_queued_and_says_so(daemon, capsys):
    daemon.will_answer(RECEIPT | {"problem": "no model is configured"})

    assert main(["save", "Alice likes tea."]) == 0
    assert capsys.readouterr().out == (
        "memory: queued (event e1)\nmemory: no agent run files it: no model is configured\n"
    )


@pytest.mark.parametrize("state", ["already queued", "already saved"])
def test_the_same_text_again_is_an_answer(state, daemon, capsys):
    daemon.will_answer(RECEIPT | {"state": state})

    assert main(["save", "Alice likes tea.", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"event_id": "e1", "state": state}


def test_a_dash_reads_standard_input(daemon, monkeypatch, capsys):
    daemon.will_answer(RECEIPT)
    text = "caf\u00e9\n\nline \x1b[31m two \N{RIGHT-TO-LEFT OVERRIDE}".encode() + b"\xff"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))

    assert main(["save", "-"]) == 0
    (sent,) = daemon.requests
    assert sent["content"] == "caf\u00e9\n\nline [31m two \ufffd"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["", " \n\t ", "\x00", "x" * (MAX_SAVE_CHARACTERS + 1)])
@pytest.mark.parametrize("from_stdin", [False, True])
def test_a_blank_or_endless_fact_is_refused_before_anybody_is_asked(
    text, from_stdin, daemon, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode() * 5)))

    assert main(["save", "-" if from_stdin else text]) == 1
    assert "1 to 100,000 characters" in capsys.readouterr().err
    assert daemon.requests == []


def test_a_fact_without_a_daemon_is_one_line_that_says_how_to_start_one(capsys):
    assert main(["save", "Alice likes tea."]) == 1

    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert "`memory start` starts one" in captured.err
