import json
import subprocess
import sys
from pathlib import Path

import pytest

from memory.daemon_client import is_alive, is_running, request
from memory.errors import DaemonError
from tests.unit.fake_daemon import fake_daemon


@pytest.fixture
def daemon(tmp_path):
    with fake_daemon(tmp_path) as daemon:
        yield daemon


def test_a_request_is_one_line_and_the_result_comes_back(daemon, tmp_path):
    daemon.answers = [b'{"ok": true, "result": {"hits": ["\xc3\xa9"]}}\n']

    assert request(tmp_path, "search", 5, query="é\n", limit=3) == {"hits": ["é"]}
    assert daemon.requests == [{"command": "search", "query": "é\n", "limit": 3}]


def test_a_refusal_carries_the_daemons_words(daemon, tmp_path):
    daemon.answers = [b'{"ok": false, "error": "x.md: not in the index"}\n']

    with pytest.raises(DaemonError, match=r"x\.md: not in the index"):
        request(tmp_path, "show", 5, path="x.md")


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"", "closed the connection"),
        (b'{"ok": tr', "closed the connection"),
        (b"not json\n", "not understood"),
        (b"[]\n", "not understood"),
        (b'{"ok": true}\n', "not understood"),
        (b'{"ok": false}\n', "not understood"),
        (b"\xff\xfe\n", "not understood"),
    ],
)
def test_a_broken_answer_is_a_clear_error(daemon, tmp_path, answer, complaint):
    daemon.answers = [answer]

    with pytest.raises(DaemonError, match=complaint):
        request(tmp_path, "status", 5)


def test_a_silent_daemon_times_out(daemon, tmp_path):
    daemon.answers = [None]

    with pytest.raises(DaemonError, match=r"did not answer within 0\.05 s"):
        request(tmp_path, "status", 0.05)


def test_a_huge_answer_is_refused(daemon, tmp_path, monkeypatch):
    monkeypatch.setattr("memory.daemon_client.MAX_ANSWER_BYTES", 1000)
    daemon.answers = [b"x" * 2000 + b"\n"]

    with pytest.raises(DaemonError, match="larger than"):
        request(tmp_path, "status", 5)


def test_a_listening_daemon_is_running(daemon, tmp_path):
    assert is_running(tmp_path)


def test_a_daemon_that_no_longer_listens_is_not_running(daemon, tmp_path):
    Path(daemon.path).unlink()

    assert not is_running(tmp_path)
    with pytest.raises(DaemonError, match="memory start"):
        request(tmp_path, "status", 5)


@pytest.mark.parametrize(
    "written",
    [
        None,
        "",
        "{",
        "[]",
        '{"pid": 1}',
        '{"pid": "x", "socket": "y"}',
        '{"pid": 0, "socket": "y"}',
        '{"pid": -1, "socket": "y"}',
        '{"pid": 99999999999999999999, "socket": "y"}',
    ],
)
def test_no_or_a_bad_address_means_no_daemon(tmp_path, written):
    if written is not None:
        (tmp_path / "daemon.json").write_text(written)

    assert not is_running(tmp_path)
    with pytest.raises(DaemonError, match="no daemon is running"):
        request(tmp_path, "status", 5)


def test_the_address_of_a_dead_process_means_no_daemon(daemon, tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    address = {"pid": ended.pid, "socket": daemon.path}
    (tmp_path / "daemon.json").write_text(json.dumps(address))

    assert not is_alive(ended.pid)
    assert not is_running(tmp_path)
