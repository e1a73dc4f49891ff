"""``memory rebuild`` from argv to exit code, in this process."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest

from memory import rebuild_progress
from memory.cli import main
from memory.commands.rebuild import Progress
from memory.rebuild_progress import progress_line, trouble
from memory.status_payloads import blank_status
from tests.unit.fake_daemon import fake_daemon

LOCAL = "memory: {embeddings: {provider: local, pricePerMillionTokens: 1000000}}\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yml").write_text(LOCAL)
    monkeypatch.setenv("MEMORY_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rebuild_progress, "POLL_S", 0)
    return home


@pytest.fixture
def workspace(home):
    folder = home / "data" / "workspace"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("# Alice\n\nLikes tea.\n")
    (folder / "b.md").write_text("# Bob\n\nLikes coffee.\n")
    (folder / "bad.md").write_bytes(b"\0")
    return folder


@pytest.fixture
def daemon(home):
    with fake_daemon(home / "data" / "memory") as daemon:
        yield daemon


@pytest.fixture
def executed(monkeypatch):
    calls = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: calls.append((path, arguments)))
    return calls


def status(files, *, building=None, embedded=0, tokens=0, failed=(), **more):
    answer = blank_status("ready") | {"files": files, "chunks": 2 * files, **more}
    answer |= {"embedded_inputs": embedded, "tokens": tokens}
    answer["failed"] = [{"path": path, "stage": "embed", "reason": "odd"} for path in failed]
    if building is not None:
        answer["building"] = {"files": building, "chunks": 0}
    return answer


def everything_below(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_dry_run_answers_with_figures_and_writes_nothing(home, workspace, executed, capsys):
    before = everything_below(home)

    assert main(["rebuild", "--dry-run", "--json"]) == 0

    answer = json.loads(capsys.readouterr().out)
    figures = {key: answer[key] for key in ("files", "chunks", "to_embed", "calls", "reused")}
    assert figures == {"files": 2, "chunks": 2, "to_embed": 2, "calls": 0, "reused": 0}
    assert answer["cost"] == answer["tokens"] > 0
    assert answer["embedding"] == {
        "provider": "local",
        "model": "all-minilm-l6-v2",
        "dimension": 384,
    }
    assert [file["path"] for file in answer["skipped"]] == ["bad.md"]
    assert everything_below(home) == before
    assert executed == []


def test_a_dry_run_for_people_is_a_short_list(workspace, capsys):
    assert main(["rebuild", "--dry-run"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "- model: local / all-minilm-l6-v2"
    assert lines[1] == "- workspace: 2 files, 2 chunks"
    assert lines[2].startswith("- a rebuild embeds 2 texts, ")
    assert lines[3].startswith("- a start has nothing to reuse and embeds 2 texts, ")
    assert lines[4].startswith("- skipped: `bad.md`: ")


def test_a_dry_run_beside_a_daemon_does_not_ask_it(daemon, workspace, capsys):
    assert main(["rebuild", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == 2
    assert daemon.requests == []


@pytest.mark.parametrize("argv", [["rebuild"], ["rebuild", "--dry-run"]])
def test_what_cannot_be_rebuilt_is_one_line(argv, home, executed, capsys):
    assert main(argv) == 1
    assert "no such folder" in capsys.readouterr().err

    (home / "config.yml").write_text("memory:\n")
    assert main(argv) == 1
    assert capsys.readouterr().err.startswith("memory: disabled \u2014 pending config (")
    assert executed == []


@pytest.mark.parametrize("argv", [["rebuild"], ["rebuild", "--dry-run"]])
def test_without_a_configuration_it_is_said_what_writes_one(argv, home, executed, capsys):
    (home / "config.yml").unlink()

    assert main(argv) == 1
    assert "config.yml is not there; `memory init` writes one\n" in capsys.readouterr().err
    assert executed == []


@pytest.mark.parametrize("json_flag", [[], ["--json"]])
def test_without_a_daemon_it_becomes_one_that_ends_by_itself(workspace, home, executed, json_flag):
    assert main(["rebuild", *json_flag]) == 0

    ((path, arguments),) = executed
    assert path == sys.executable
    assert arguments[1:4] == ["-P", "-m", "actors.daemon"]
    assert arguments[arguments.index("--data") + 1] == str(home / "data" / "memory")
    assert arguments[arguments.index("--rebuild") :] == ["--rebuild", *json_flag]


def answers(daemon, *results):
    for result in results:
        daemon.will_answer(result)


def test_a_running_daemon_is_asked_and_waited_for(daemon, capsys):
    begun = {"begun": True, "resumed": False, "rebuild": 3}
    before, during = status(5, embedded=7, tokens=70), status(5, building=2)
    answers(daemon, before, begun, False, during, True, status(5, embedded=17, tokens=170))

    assert main(["rebuild", "--json"]) == 0

    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "begun": True,
        "resumed": False,
        "files": 5,
        "chunks": 10,
        "embedded_inputs": 10,
        "tokens": 100,
        "failed": [],
    }
    assert captured.err == ""
    asked = [request["command"] for request in daemon.requests]
    assert asked == ["status", "rebuild", "is_rebuilt", "status", "is_rebuilt", "status"]
    assert daemon.requests[2]["rebuild"] == 3


def test_a_file_that_is_left_behind_is_named_and_fails_the_command(daemon, capsys):
    end = status(5, embedded=10, failed=["x\x1b.md"])
    answers(daemon, status(5), {"begun": False, "resumed": True, "rebuild": 0}, True, end)

    assert main(["rebuild"]) == 1

    captured = capsys.readouterr()
    assert captured.out.startswith("memory: the index that was being built is complete: 5 files")
    assert captured.err.startswith("memory: x.md was left behind")


def test_a_daemon_that_ends_meanwhile_is_one_line_that_says_how_to_go_on(
    daemon, monkeypatch, capsys
):
    answers(daemon, status(5), {"begun": True, "resumed": False, "rebuild": 1})
    real = rebuild_progress.ask_daemon

    async def ask(data, command, timeout_s, **words):
        if command == "is_rebuilt":
            (data / "daemon.json").unlink()
        return await real(data, command, timeout_s, **words)

    monkeypatch.setattr(rebuild_progress, "ask_daemon", ask)

    assert main(["rebuild"]) == 1
    assert "`memory rebuild` or `memory start` go on with it" in capsys.readouterr().err


def test_a_refusal_of_the_daemon_is_its_own_line(daemon, capsys):
    answers(daemon, status(5))
    daemon.answers.append(b'{"ok": false, "error": "the rebuild was not begun: disk full"}\n')

    assert main(["rebuild"]) == 1
    assert capsys.readouterr().err == "memory: the rebuild was not begun: disk full\n"


def test_ctrl_c_leaves_the_daemon_at_work_and_says_so(daemon, monkeypatch, capsys):
    answers(
        daemon,
        status(5),
        {"begun": True, "resumed": False, "rebuild": 1},
        False,
        status(5, building=1),
    )

    def interrupt(_self, _status):
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "show", interrupt)

    assert main(["rebuild"]) == 130
    assert "the daemon goes on" in capsys.readouterr().err
    assert "stop" not in [request["command"] for request in daemon.requests]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_for_terminals_and_trouble_is_said_once(monkeypatch):
    screen, pipe = Terminal(), io.StringIO()
    failing = status(5, building=2, failed=["a.md"])
    for stream in (screen, pipe):
        monkeypatch.setattr(sys, "stderr", stream)
        progress = Progress()
        progress.show(status(5, building=1))
        progress.show(failing)
        progress.show(failing)

    assert pipe.getvalue() == "memory: a.md failed and is tried again: odd\n"
    assert "\r\x1b[Kmemory: 1 of 5 files are embedded anew" in screen.getvalue()
    assert screen.getvalue().count("failed") == 1


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (status(1_200, building=412), "412 of 1,200 files are embedded anew"),
        (status(3, building=3), "3 files are embedded, the new index gets ready to answer"),
        (status(3, building=3, pending=1), "3 of 3 files are embedded anew"),
        (status(3, pending=2), "2 files are pending"),
    ],
)
def test_the_line_says_how_far_it_is(given, line):
    assert progress_line(given) == line


def test_whatever_holds_it_up_is_said_the_most_general_first():
    held = status(3, failed=["a.md"])
    of_one_file = trouble(held)
    held["model_calls"] |= {"breaker": "open", "last_error": "openai: quota"}
    of_the_model = trouble(held)
    held["disk_error"] = "cannot write memory.wal"
    of_the_disk = trouble(held)
    held["state"] = "workspace_missing"

    assert trouble(status(3)) == ""
    assert of_one_file.startswith("a.md failed")
    assert of_the_model.startswith("openai: quota")
    assert of_the_disk.startswith("cannot write memory.wal")
    assert trouble(held).startswith("the workspace is missing")
