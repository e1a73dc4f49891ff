"""``memory doctor`` names what is wrong with its remedy, and finds nothing where nothing is."""

from __future__ import annotations

import json
import os
import shutil
from types import SimpleNamespace

import pytest

from memory.cli import main
from memory.doctor.configuration import embedding_findings, read_configuration
from memory.doctor.finding import Finding, doctor_lines, doctor_payload
from memory.doctor.folders import data_findings, scanned
from tests.unit.findings import LOCAL, NOW, REMOTE, saved, settings_of, states, the_problem
from tests.unit.workspace_files import Refusing, workspace, write

# The whole command


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("MEMORY_HOME", str(home))
    for name in ("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    # Ray cannot be imported beside unit tests.
    monkeypatch.setattr("memory.doctor.ray_runtime.is_installed", lambda _name: True)
    return home


def test_nothing_is_wrong_before_the_first_start(home, capsys):
    assert main(["doctor", "--offline"]) == 0
    assert "`memory start` or `memory init` writes one" in capsys.readouterr().out


def test_a_sound_memory_without_a_daemon_ends_with_0(home, capsys):
    (home / "config.yml").write_text(LOCAL)
    write(home, "data/workspace/a.md")
    (home / "data" / "memory").mkdir(mode=0o700)

    assert main(["doctor", "--offline", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is True
    assert {tuple(each) for each in answer["findings"]} == {("name", "state", "detail", "remedy")}
    assert {each["name"] for each in answer["findings"]} >= {
        "configuration",
        "embeddings",
        "workspace",
        "clock",
        "data folder",
        "disk",
        "lock",
        "daemon",
        "watcher",
        "model packages",
        "model",
        "ray",
        "temporary folder",
        "network",
    }


def test_a_broken_configuration_hides_nothing_else(home, capsys):
    (home / "config.yml").write_text("memory:\n  colour: red\n  minScoreToMention: 2\n")

    assert main(["doctor", "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    wrong = [each for each in findings if each["state"] == "problem"]
    assert [each["name"] for each in wrong] == ["configuration"] * 2
    assert any(each["detail"].startswith(f"{home}/config.yml:2: memory.colour") for each in wrong)
    assert {"workspace", "data folder", "ray"} <= {each["name"] for each in findings}


def test_a_look_that_fails_is_a_finding(home, capsys, monkeypatch):
    def refuse(_data):
        raise PermissionError(13, "Permission denied", "x")

    monkeypatch.setattr("memory.doctor.examination.data_findings", refuse)

    assert main(["doctor", "--offline"]) == 1
    assert "problem data folder: cannot be looked at" in capsys.readouterr().out


def test_each_finding_is_one_line_that_a_terminal_shows():
    answer = doctor_payload([Finding("workspace", "problem", "a\nb \x1b[31m", "do c")])

    assert list(doctor_lines(answer)) == ["problem workspace: a b [31m; do c"]


# Configuration


def test_a_missing_file_that_was_named_is_a_problem(tmp_path):
    settings, findings = read_configuration(tmp_path / "x.yml", is_named=True)

    assert settings is None
    assert "is not there" in the_problem(findings).detail


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memory:\n", "disabled"),
        ("memory: {embeddings: {provider: groq, model: m}}\n", "does not expose embeddings"),
        (REMOTE % "env:NO_SUCH_KEY", "NO_SUCH_KEY is not set"),
    ],
)
def test_a_model_that_cannot_embed_is_a_problem(tmp_path, text, said):
    assert said in the_problem(embedding_findings(settings_of(tmp_path, text))).detail


def test_a_key_is_there_and_never_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "sk-canary")

    (found,) = embedding_findings(settings_of(tmp_path, REMOTE % "env:SOME_KEY"))

    assert (found.state, found.detail) == ("ok", "openai / m, its key is there")


# Workspace and data folder


def test_unreadable_and_skipped_files_are_named(tmp_path):
    for name in ("a.md", "locked/b.md", "binary.md"):
        write(tmp_path, name)
    (tmp_path / "link.md").symlink_to("a.md")
    files = workspace(tmp_path, file_system=Refusing("locked", PermissionError(13, "No")))

    scan, findings = scanned(tmp_path, files, NOW, is_named=True)

    assert len(scan.files) == 2
    assert "locked" in the_problem(findings).detail
    assert any(each.state == "note" and "link.md" in each.detail for each in findings)


@pytest.mark.parametrize(("is_named", "state"), [(True, "problem"), (False, "note")])
def test_a_missing_workspace_is_wrong_if_somebody_named_it(tmp_path, is_named, state):
    root = tmp_path / "missing"

    scan, findings = scanned(root, workspace(root), NOW, is_named=is_named)

    assert scan is None
    assert states(findings) == [state]


def test_a_file_of_the_future_tells_of_a_wrong_clock(tmp_path):
    for name, ahead_s in (("now.md", 2), ("late.md", 3600)):
        os.utime(write(tmp_path, name), (NOW + ahead_s, NOW + ahead_s))

    _, findings = scanned(tmp_path, workspace(tmp_path), NOW, is_named=True)

    assert the_problem(findings).detail == "1 file changed in the future: late.md"


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return folder


def test_a_sound_data_folder_is_well(data, tmp_path):
    saved(data, tmp_path)

    assert set(states(data_findings(data))) == {"ok"}


@pytest.mark.parametrize("name", ["", "outbox.jsonl"])
def test_what_others_may_read_is_named(data, name):
    (data / "outbox.jsonl").touch(mode=0o600)
    (data / name).chmod((data / name).stat().st_mode | 0o040)

    found = the_problem(data_findings(data))

    assert found.detail == f"open to other users: {name or 'data'}"
    assert found.remedy == f"chmod -R go= {data}"


def test_a_file_in_the_place_of_the_data_folder_is_a_problem(tmp_path):
    (tmp_path / "data").touch()

    assert "is not a folder" in the_problem(data_findings(tmp_path / "data")).detail


def test_a_snapshot_that_cannot_be_read_is_a_problem(data):
    (data / "memory.msp").write_bytes(b"garbage")
    (data / "memory.msp").chmod(0o600)

    assert "memory.msp" in the_problem(data_findings(data)).detail


@pytest.mark.parametrize("name", ["lock", "ray.log", "embedding.json", "memory.wal"])
def test_a_folder_in_the_place_of_a_file_is_a_problem(data, name):
    (data / name).mkdir(mode=0o700)

    found = the_problem(data_findings(data))

    assert (found.detail, found.remedy) == (f"{name} is not a file", f"move {data / name} away")


def test_a_saved_fact_that_cannot_be_read_is_a_problem(data):
    (data / "outbox.jsonl").write_text("{}\n")
    (data / "outbox.jsonl").chmod(0o600)

    assert "1 line of outbox.jsonl cannot be read" in the_problem(data_findings(data)).detail


def test_less_room_than_twice_the_index_is_a_problem(data, monkeypatch):
    with (data / "memory.msp").open("wb") as file:
        file.truncate(100 << 20)
    (data / "memory.msp").chmod(0o600)
    for free, expected in ((201 << 20, "ok"), (199 << 20, "problem")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _p, free=free: SimpleNamespace(free=free))

        assert states(data_findings(data), "disk") == [expected]


def test_an_unconfigured_model_is_not_probed(home, capsys):
    (home / "config.yml").write_text("memory:\n")

    assert main(["doctor", "--json"]) == 1
    names = [each["name"] for each in json.loads(capsys.readouterr().out)["findings"]]
    assert "model" not in names
