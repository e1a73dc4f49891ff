"""The command line from argv to exit code, in this process."""

import gc
import json
import os
import pty
import subprocess
import sys

import pytest

from memory.cli import main
from memory.commands.stop import _wait_for_end
from memory.data_lock import data_lock
from memory.errors import DaemonError
from memory.outbox import OUTBOX_NAME, Outbox, SkillEvent, event_id
from memory.status_payloads import blank_status
from tests.doubles import HashEmbedder
from tests.unit.fake_daemon import fake_daemon
from tests.unit.successions import indexed

HIT = {
    "path": "wiki/a.md",
    "headlines": "# A",
    "start_line": 1,
    "end_line": 2,
    "score": 0.9,
    "text_score": 0.8,
    "vector_score": 0.7,
    "snippet": "text",
    "last_modified": "2026-05-12T12:00:00Z",
    "fresh": True,
}
SEARCH = {"query": "q", "source": "daemon", "age_s": 0.0, "degraded": "", "hits": [HIT]}
SHOWN = {
    "path": "wiki/a.md",
    "last_modified": "2026-05-12T12:00:00Z",
    "chunks": [
        {
            "headlines": "# A",
            "context": "",
            "content": "body \x1b[31mred",
            "content_hash": "ff",
            "part": 1,
            "start_line": 1,
            "end_line": 2,
        }
    ],
}
LOCAL = "memory: {embeddings: {provider: local}}\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A folder of its own for each test, as the checkout is for ``cli.sh``."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("MEMORY_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture
def daemon(home):
    with fake_daemon(home / "data" / "memory") as daemon:
        yield daemon


@pytest.fixture
def executed(monkeypatch):
    """Argument lists that ``start`` would have become."""
    calls = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: calls.append((path, arguments)))
    return calls


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["frobnicate"],
        ["search"],
        ["search", "q", "-n", "0"],
        ["search", "q", "-n", "x"],
        ["start", "--json"],
        ["events", "ack"],
        ["events", "frobnicate"],
        ["events", "--follow", "--visibility", "0"],
        ["mcp", "--port", "65536"],
        ["mcp", "--port", "-1"],
        ["save"],
        ["start", "--dry-run"],
    ],
)
def test_wrong_usage_ends_with_2(argv, capsys):
    with pytest.raises(SystemExit) as ended:
        main(argv)

    assert ended.value.code == 2
    assert "usage: memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "start",
        "stop",
        "status",
        "search",
        "show",
        "list",
        "context",
        "eval",
        "check",
        "doctor",
        "events",
        "mcp",
        "save",
        "rebuild",
        "init",
    ],
)
def test_every_command_has_help_and_the_common_options(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])

    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(option in text for option in ("--config", "--workspace", "--data"))


@pytest.mark.parametrize(
    "argv", [["search", "q"], ["show", "a.md"], ["list"], ["context", "q"], ["eval"], ["check"]]
)
def test_without_daemon_and_index_a_reader_fails_with_one_line(argv, home, capsys):
    assert main(argv) == 1

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("memory: no index at ")
    assert "memory start" in captured.err
    assert captured.err.count("\n") == 1


def test_a_running_daemon_answers_a_search(daemon, capsys):
    daemon.will_answer(SEARCH)

    assert main(["search", "q", "-n", "3"]) == 0
    assert daemon.requests == [{"command": "search", "query": "q", "limit": 3}]
    assert capsys.readouterr().out.startswith("1 hit in 1 file \u2014 source: daemon\n")


def test_json_is_the_answer_and_nothing_else(daemon, capsys):
    daemon.will_answer(SEARCH)

    assert main(["search", "q", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == SEARCH
    assert captured.err == ""


EVENT = {
    "event_id": "ab12",
    "skill": "skills:memory",
    "prompt": "Alice\x1b[31m moved.\n# Obey",
    "source_ids": ["chat-1"],
    "related": ["wiki/a.md"],
    "created_at": 12.5,
    "is_related_known": True,
}


def test_waiting_events_are_lines_of_json_for_programs(daemon, capsys):
    daemon.will_answer([EVENT, EVENT | {"event_id": "cd34"}])

    assert main(["events", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["event_id"] for line in lines] == ["ab12", "cd34"]
    assert json.loads(lines[0]) == EVENT


def test_waiting_events_are_inert_lines_for_people(daemon, capsys):
    daemon.will_answer([EVENT])

    assert main(["events"]) == 0
    assert capsys.readouterr().out == (
        "- `ab12` skills:memory\n  > Alice[31m moved. # Obey\n  related: `wiki/a.md`\n"
    )


def test_without_a_daemon_waiting_events_are_read_from_disk(home, capsys):
    data = home / "data" / "memory"
    assert main(["events"]) == 0
    assert capsys.readouterr().out == "memory: no event waits\n"

    told = SkillEvent(event_id("Alice moved."), "Alice moved.", (), (), 12.5)
    Outbox(data / OUTBOX_NAME).add(told)
    assert main(["events", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["prompt"] == "Alice moved."


@pytest.mark.parametrize("argv", [["--json", "ack", "ab12"], ["ack", "ab12", "--json"]])
def test_an_event_is_acknowledged_by_its_id(argv, daemon, capsys):
    daemon.will_answer({"acknowledged": True})

    assert main(["events", *argv]) == 0
    assert daemon.requests == [{"command": "acknowledge", "event_id": "ab12"}]
    assert json.loads(capsys.readouterr().out) == {"acknowledged": True}


def test_an_event_that_does_not_wait_cannot_be_acknowledged(daemon, capsys):
    daemon.will_answer({"acknowledged": False})

    assert main(["events", "ack", "ab12"]) == 1
    assert capsys.readouterr().err.startswith("memory: no event ab12 waits")


def test_acknowledging_without_a_daemon_fails_with_one_line(capsys):
    assert main(["events", "ack", "ab12"]) == 1
    assert "`memory start` starts one" in capsys.readouterr().err


def test_following_prints_each_event_as_it_comes_until_it_is_interrupted(
    daemon, capsys, monkeypatch
):
    daemon.will_answer(None)
    daemon.will_answer(EVENT)
    printed = []

    def interrupted(text):
        printed.append(text)
        raise KeyboardInterrupt

    monkeypatch.setattr("memory.commands.events._print_json", interrupted)

    assert main(["events", "--follow", "--json", "--visibility", "60"]) == 130
    assert printed == [EVENT]
    assert [request["visibility_s"] for request in daemon.requests] == [60, 60]


def test_content_is_printed_without_escape_sequences(daemon, capsys):
    """FAULTS 87, also in JSON."""
    daemon.will_answer(SHOWN)
    daemon.will_answer(SHOWN)

    assert main(["show", "wiki/a.md"]) == 0
    assert main(["show", "wiki/a.md", "--json"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_the_context_is_the_section_alone_on_stdout(daemon, capsys):
    section = "# Memories\n\nstub\n"
    daemon.will_answer({"section": section, "rows": [], "degraded": ""})

    assert main(["context", "prompt"]) == 0
    captured = capsys.readouterr()
    assert captured.out == section
    assert captured.err == "source: daemon\n"


def test_a_listing_says_where_it_comes_from(daemon, capsys):
    daemon.will_answer([{"path": "a.md", "chunks": 1, "last_modified": "now"}])

    assert main(["list"]) == 0
    assert capsys.readouterr().out.startswith("1 file \u2014 source: daemon\n")


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["show", "a.md", "--json"], lambda answer: answer["path"] == "a.md"),
        (["list", "--json"], lambda answer: answer[0]["path"] == "a.md"),
    ],
)
def test_what_is_too_large_for_the_socket_is_read_from_disk(
    home, daemon, monkeypatch, capsys, argv, found
):
    indexed(home / "data" / "memory", HashEmbedder(8))
    monkeypatch.setattr("memory.daemon_client.MAX_ANSWER_BYTES", 100)
    daemon.will_answer("x" * 200)

    assert main(argv) == 0
    assert found(json.loads(capsys.readouterr().out))


def test_a_refusal_of_the_daemon_is_one_line_and_exit_code_1(daemon, capsys):
    daemon.answers.append(b'{"ok": false, "error": "x\\u001b[2J is not in the index"}\n')

    assert main(["show", "x"]) == 1
    assert capsys.readouterr().err == "memory: x[2J is not in the index\n"


def test_the_status_of_a_running_daemon_is_its_answer(daemon, capsys):
    status = blank_status("ready")
    daemon.will_answer(status)

    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == status


def test_without_a_daemon_the_status_is_stopped(capsys):
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == blank_status("stopped")


@pytest.mark.parametrize("text", ["memory: {embeddings: 7}\n", "memory: [\n", "\x00"])
def test_a_configuration_that_cannot_be_read_is_said_and_the_rest_is_shown(home, capsys, text):
    (home / "config.yml").write_text(text)

    assert main(["status", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert main(["status"]) == 0
    shown = capsys.readouterr().out

    assert answer["state"] == "disabled"
    assert "config.yml" in answer["config_error"]
    assert "- configuration cannot be used: " in shown
    assert "indexed" in shown


def test_a_configuration_that_became_wrong_is_said_beside_a_running_daemon(home, daemon, capsys):
    (home / "config.yml").write_text("memory: {embeddings: 7}\n")
    daemon.will_answer(blank_status("ready"))

    assert main(["status", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)

    assert answer["state"] == "ready"
    assert "config.yml:1" in answer["config_error"]


def test_a_pending_configuration_shows_as_disabled(home, capsys):
    (home / "config.yml").write_text("memory:\n")

    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "disabled"


def test_stop_waits_until_the_lock_is_free(daemon, monkeypatch, capsys):
    daemon.will_answer({})
    held = iter([True, True, False])
    monkeypatch.setattr("memory.commands.stop.is_held", lambda _data: next(held))
    monkeypatch.setattr("memory.commands.stop._POLL_S", 0.001)

    assert main(["stop"]) == 0
    assert daemon.requests == [{"command": "stop"}]
    assert capsys.readouterr().out == "memory: stopped\n"
    assert list(held) == []


def test_stop_gives_up_on_a_daemon_that_does_not_end(tmp_path):
    waits = []

    with data_lock(tmp_path), pytest.raises(DaemonError, match=r"still runs after 60 s"):
        _wait_for_end(tmp_path, waits.append)
    assert sum(waits) == pytest.approx(60)


def test_stop_without_a_daemon_is_an_error_with_a_remedy(capsys):
    assert main(["stop"]) == 1
    assert "no daemon is running" in capsys.readouterr().err


def test_start_without_anything_writes_configuration_and_workspace(home, executed, capsys):
    assert main(["start"]) == 0

    assert (home / "config.yml").exists()
    assert (home / "data" / "workspace" / "skills" / "memory" / "save.md").exists()
    assert capsys.readouterr().out == (
        f"memory: wrote {home}/config.yml (provider: local)\n"
        f"memory: created the workspace {home}/data/workspace\n"
    )
    ((path, arguments),) = executed
    assert path == sys.executable
    assert arguments == [
        sys.executable,
        "-P",
        "-m",
        "actors.daemon",
        "--config",
        str(home / "config.yml"),
        "--workspace",
        str(home / "data" / "workspace"),
        "--data",
        str(home / "data" / "memory"),
    ]


def test_start_takes_the_options_relative_to_the_current_folder(tmp_path, home, executed):
    (tmp_path / "notes").mkdir()

    assert main(["start", "--workspace", "notes", "--data", "idx"]) == 0

    ((_, arguments),) = executed
    assert arguments[-4:] == [
        "--workspace",
        str(tmp_path / "notes"),
        "--data",
        str(tmp_path / "idx"),
    ]
    assert not (home / "data").exists()


@pytest.mark.parametrize("configured", [True, False])
def test_start_refuses_a_workspace_that_was_named_and_does_not_exist(
    home, executed, capsys, configured
):
    (home / "config.yml").write_text(LOCAL + ("core: {workspace: nowhere}\n" * configured))

    assert main(["start", *([] if configured else ["--workspace", "nowhere"])]) == 1
    assert "no such folder; create it with `memory init" in capsys.readouterr().err
    assert executed == []


def test_start_keeps_an_existing_configuration_and_workspace(home, executed, capsys):
    (home / "config.yml").write_text(LOCAL)
    (home / "data" / "workspace").mkdir(parents=True)

    assert main(["start"]) == 0
    assert capsys.readouterr().out == ""
    assert list((home / "data" / "workspace").iterdir()) == []
    assert len(executed) == 1


def test_start_with_a_pending_configuration_says_so_and_ends(home, executed, capsys):
    (home / "config.yml").write_text("memory:\n")

    assert main(["start"]) == 1
    assert capsys.readouterr().err.startswith("memory: disabled \u2014 pending config (")
    assert executed == []


def test_start_beside_a_running_daemon_is_refused(daemon, executed, capsys):
    assert main(["start"]) == 1
    assert "already running" in capsys.readouterr().err
    assert executed == []


def test_a_wrong_configuration_is_one_line_per_problem(home, executed, capsys):
    (home / "config.yml").write_text("memory: {minScoreToMention: 2, colour: red}\n")

    assert main(["start"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"memory: {home}/config.yml:1: memory.") for line in lines)


def test_a_configuration_that_was_named_must_exist(capsys):
    assert main(["search", "q", "--config", "none.yml", "--data", "x"]) == 1
    assert "none.yml" in capsys.readouterr().err


def test_init_writes_what_is_missing_and_says_what(home, tmp_path, capsys):
    assert main(["init", "--workspace", "notes"]) == 0
    assert capsys.readouterr().out == (
        f"memory: wrote {home}/config.yml\n"
        f"memory: wrote {tmp_path}/notes/skills/memory/SKILL.md\n"
        f"memory: wrote {tmp_path}/notes/skills/memory/save.md\n"
    )

    assert main(["init", "--workspace", "notes"]) == 0
    assert capsys.readouterr().out == (
        f"memory: kept {home}/config.yml\nmemory: nothing is missing in {tmp_path}/notes\n"
    )


def test_ctrl_c_ends_with_130(monkeypatch):
    def interrupt(_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("memory.commands.status.run", interrupt)

    assert main(["status"]) == 130


def test_a_command_runs_without_the_collector_which_goes_on_after_it(monkeypatch):
    seen = []
    monkeypatch.setattr("memory.commands.status.run", lambda _options: seen.append(gc.isenabled()))

    main(["status"])

    assert (seen, gc.isenabled()) == ([False], True)
    gc.unfreeze()


def test_a_folder_that_cannot_be_made_is_one_line(home, capsys):
    (home / "data").write_text("a file where a folder should be")

    assert main(["init"]) == 1
    assert capsys.readouterr().err == f"memory: {home}/data/workspace: Not a directory\n"


def test_a_damaged_index_is_one_line_with_the_remedy(home, capsys):
    (home / "data" / "memory").mkdir(parents=True)
    (home / "data" / "memory" / "memory.msp").write_bytes(b"garbage" * 100)

    assert main(["list"]) == 1
    error = capsys.readouterr().err
    assert "`memory start` sets it aside" in error
    assert error.count("\n") == 1


def run_memory(*argv, **options):
    return subprocess.run(
        [sys.executable, "-m", "memory", *argv],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.mark.slow
def test_a_process_ends_with_the_exit_code_and_no_traceback(tmp_path):
    failed = run_memory("list", "--data", str(tmp_path))

    assert failed.returncode == 1
    assert failed.stderr.startswith("memory: no index at ")
    assert "Traceback" not in failed.stderr


def on_a_terminal(argv, **environment):
    """Returns what a command writes to a terminal."""
    reading, writing = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "memory", *argv],
        stdout=writing,
        env=os.environ | {"TERM": "xterm", "NO_COLOR": ""} | environment,
        check=True,
    )
    os.close(writing)
    try:
        return os.read(reading, 10_000).decode()
    finally:
        os.close(reading)


@pytest.mark.slow
def test_a_terminal_gets_styled_text_unless_it_wants_no_colour(tmp_path):
    argv = ["status", "--data", str(tmp_path)]

    assert "\x1b[" in on_a_terminal(argv)
    assert "- 0 files, 0 chunks indexed" in on_a_terminal(argv, NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal(argv, NO_COLOR="1")


@pytest.mark.slow
def test_a_closed_pipe_is_quiet():
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [sys.executable, "-m", "memory", "status"],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)

    assert process.returncode == 141
    assert process.stderr == b""


@pytest.mark.slow
def test_a_listing_imports_no_heavy_library(tmp_path):
    """The time to the first byte is mostly the time to import."""
    heavy = {
        "numpy",
        "faiss",
        "whoosh",
        "onnxruntime",
        "pydantic",
        "rich",
        "asyncio",
        "yaml",
        "ray",
    }
    code = (
        "import sys; from memory.cli import main; main(['list', '--data', sys.argv[1]]);"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )

    listed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )

    assert heavy & set(listed.stdout.split()) == set()
