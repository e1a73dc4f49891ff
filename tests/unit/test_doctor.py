"""``memory doctor`` names what is wrong with its remedy, and finds nothing where nothing is."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import threading
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from memory import snapshot
from memory.cli import main
from memory.config import load
from memory.data_lock import data_lock
from memory.doctor import daemon as daemon_looks
from memory.doctor.configuration import embedding_findings, read_configuration
from memory.doctor.daemon import daemon_status, following_findings
from memory.doctor.embedding import model_findings
from memory.doctor.finding import Finding, doctor_lines, doctor_payload
from memory.doctor.folders import data_findings, scanned
from memory.doctor.installed import is_installed
from memory.doctor.ray_runtime import ray_findings
from memory.doctor.watching import watching_findings
from memory.errors import ProviderUnavailable
from memory.status_payloads import blank_status
from tests.doubles import HashEmbedder
from tests.unit.building import image_of
from tests.unit.fake_daemon import FakeDaemon
from tests.unit.indexed_files import indexed
from tests.unit.workspace_files import Refusing, workspace, write

NOW = 2_000_000_000.0
LOCAL = "memory: {embeddings: {provider: local}}\n"
REMOTE = "memory: {embeddings: {provider: openai, model: m}}\ninference: {apiKeys: {openai: %s}}\n"


def states(findings, name=None):
    return [each.state for each in findings if name in (None, each.name)]


def the_problem(findings):
    (found,) = [each for each in findings if each.state == "problem"]
    assert found.remedy
    return found


def settings_of(tmp_path, text):
    path = tmp_path / "config.yml"
    path.write_text(text)
    return load(path)


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


def saved(data, root):
    snapshot.write(data / "memory.msp", image_of(indexed(root, HashEmbedder())), saved_at=1.0)


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


def test_less_room_than_twice_the_index_is_a_problem(data, monkeypatch):
    with (data / "memory.msp").open("wb") as file:
        file.truncate(100 << 20)
    (data / "memory.msp").chmod(0o600)
    for free, expected in ((201 << 20, "ok"), (199 << 20, "problem")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _p, free=free: SimpleNamespace(free=free))

        assert states(data_findings(data), "disk") == [expected]


# Daemon


@pytest.fixture
def daemon(data):
    folder = Path(tempfile.mkdtemp(prefix="m"))
    daemon = FakeDaemon(data, folder)
    yield daemon
    daemon.close()
    shutil.rmtree(folder)


def test_without_a_daemon_there_is_nothing_wrong(data):
    status, findings = daemon_status(data, NOW)

    assert status is None
    assert states(findings) == ["ok", "note"]


def test_a_daemon_that_runs_is_named_with_its_process(data, daemon):
    daemon.will_answer(blank_status("ready"))

    with data_lock(data):
        status, findings = daemon_status(data, NOW)

    assert status["state"] == "ready"
    assert findings[0].detail == f"held by process {os.getpid()}"
    assert set(states(findings)) == {"ok"}


@pytest.mark.parametrize(("age_s", "state"), [(10, "note"), (1000, "problem")])
def test_a_lock_whose_owner_does_not_answer_is_a_start_or_a_problem(data, age_s, state):
    with data_lock(data):
        since = (data / "lock").stat().st_mtime
        _, findings = daemon_status(data, since + age_s)

    assert states(findings, "daemon") == [state]


def test_a_lock_that_a_dead_process_left_to_another_is_a_problem(data, monkeypatch):
    monkeypatch.setattr(daemon_looks, "is_alive", lambda _pid: False)
    with data_lock(data):
        _, findings = daemon_status(data, 0.0)

    assert "which ended" in the_problem(findings).detail


FAILED = {"path": "a.md", "stage": "embed", "reason": "quota", "attempts": 1, "retry_at": 0.0}
SILENT = {"name": "Watcher", "pid": 1, "restarts": 0, "state": "silent"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"state": "workspace_missing"}, "workspace is missing"),
        ({"disk_error": "No space left on device"}, "No space left"),
        ({"failed": [FAILED]}, "a.md: quota"),
        ({"actors": [SILENT]}, "no answer of Watcher"),
    ],
)
def test_what_the_daemon_complains_about_is_a_problem(data, daemon, changed, said):
    daemon.will_answer(blank_status("ready") | changed)

    assert said in the_problem(daemon_status(data, NOW)[1]).detail


def test_a_provider_that_does_not_work_is_a_problem(data, daemon):
    status = blank_status("ready")
    status["model_calls"] |= {"breaker": "open", "last_error": "401"}
    daemon.will_answer(status)

    assert "401" in the_problem(daemon_status(data, NOW)[1]).detail


def test_a_daemon_that_refuses_is_a_problem(data, daemon):
    daemon.answers.append(b'{"ok": false, "error": "busy"}\n')

    assert the_problem(daemon_status(data, NOW)[1]).detail == "busy"


# Whether the index follows the files


def following(data, root, status, *, now_s=NOW):
    scan = workspace(root).scan()
    return list(following_findings(data, scan, status, interval_s=60.0, now_s=now_s))


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "notes"
    for name in ("a.md", "b.md"):
        write(root, name, b"# A\n")
    return root


def ready(**changed):
    ages = {"last_event_age_s": 5.0, "last_reconcile_age_s": 7.0}
    return blank_status("ready") | ages | changed


def test_an_index_that_follows_is_well(data, root):
    saved(data, root)

    assert states(following(data, root, ready())) == ["ok", "ok"]


def test_a_file_that_was_not_noticed_for_long_is_a_problem_beside_a_daemon(data, root):
    saved(data, root)
    os.utime(write(root, "old.md"), (NOW - 3600, NOW - 3600))

    assert "old.md" in the_problem(following(data, root, ready())).detail
    assert states(following(data, root, ready(state="indexing"))) == ["ok", "note"]
    assert states(following(data, root, None)) == ["note"]


def test_a_file_that_was_just_written_is_no_problem(data, root):
    saved(data, root)
    os.utime(write(root, "new.md"), (NOW - 1, NOW - 1))

    assert states(following(data, root, ready())) == ["ok", "note"]


def test_a_comparison_that_is_overdue_is_a_problem(data, root):
    saved(data, root)

    found = the_problem(following(data, root, ready(last_reconcile_age_s=200.0)))
    assert "all files compared 200 s ago" in found.detail


# Watching


def fake_proc(folder, *, mounts="", watches=8192, instances=128, used=0):
    (folder / "self").mkdir(parents=True)
    (folder / "self" / "mountinfo").write_text("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n" + mounts)
    inotify = folder / "sys" / "fs" / "inotify"
    inotify.mkdir(parents=True)
    (inotify / "max_user_watches").write_text(f"{watches}\n")
    (inotify / "max_user_instances").write_text(f"{instances}\n")
    (folder / "12" / "fd").mkdir(parents=True)
    for number in range(used):
        (folder / "12" / "fd" / str(number)).symlink_to("anon_inode:inotify")
    (folder / "12" / "fd" / "file").symlink_to("/dev/null")
    return folder


def test_enough_watches_are_well(tmp_path, root):
    proc = fake_proc(tmp_path / "proc", used=126)

    assert states(watching_findings(root, proc)) == ["ok", "ok", "ok"]


def test_a_network_mount_is_polled_which_is_worth_knowing(tmp_path, root):
    proc = fake_proc(tmp_path / "proc", mounts=f"2 1 0:9 / {root} rw - nfs4 server:/x rw\n")

    (found,) = watching_findings(root, proc)

    assert found.state == "note"
    assert "nfs4" in found.detail
    assert "polled" in found.detail


def test_more_folders_than_watches_are_a_problem_hidden_ones_too(tmp_path, root):
    write(root, ".git/objects/x")
    proc = fake_proc(tmp_path / "proc", watches=3)

    found = the_problem(watching_findings(root, proc))

    assert found.detail.startswith("3 folders, one for each, this user may have 3")
    assert found.remedy == "sysctl fs.inotify.max_user_watches=6"


def test_no_instance_left_is_a_problem(tmp_path, root):
    proc = fake_proc(tmp_path / "proc", used=127)

    assert "max_user_instances" in the_problem(watching_findings(root, proc)).remedy


def test_a_system_without_proc_is_no_problem(tmp_path, root):
    assert states(watching_findings(root, tmp_path / "none")) == ["note"]


# The model


@pytest.fixture
def local(tmp_path):
    return settings_of(tmp_path, LOCAL)


def test_a_model_that_embeds_is_well_and_a_probe_is_one_short_text(local):
    embedder = HashEmbedder(384)

    findings = list(model_findings(local, is_offline=False, opened=lambda *_: embedder))

    assert states(findings) == ["ok", "ok"]
    assert embedder.queries == ["memory"]
    assert "call" not in findings[-1].detail


def test_a_probe_of_a_provider_says_that_it_costs_a_call(tmp_path):
    settings = settings_of(tmp_path, REMOTE % "sk-canary")

    findings = list(model_findings(settings, is_offline=False, opened=lambda *_: HashEmbedder()))

    assert findings[-1].detail == "embeds, dimension 16 (one call to the provider)"


def test_offline_asks_nobody(local):
    def refuse(*_):
        raise AssertionError

    assert states(model_findings(local, is_offline=True, opened=refuse)) == ["ok", "note"]


def test_a_missing_package_is_a_problem_with_the_command_that_helps(local, monkeypatch):
    monkeypatch.setattr("memory.doctor.embedding.is_installed", lambda name: name != "tokenizers")

    found = the_problem(model_findings(local, is_offline=False))

    assert found.detail == "missing: tokenizers"
    assert found.remedy.startswith("pip install")


def test_a_model_that_does_not_answer_in_time_is_a_problem(local):
    release = threading.Event()

    def hang(*_):
        release.wait(20)

    found = the_problem(model_findings(local, is_offline=False, opened=hang, deadline_s=0.01))
    release.set()

    assert found.detail == "no vector of a short text within 0.01 s"


def test_what_a_provider_says_is_passed_on(local):
    def fail(*_):
        raise ProviderUnavailable("openai", "429")

    found = the_problem(model_findings(local, is_offline=False, opened=fail))
    assert found.detail == "openai: 429"


def test_another_dimension_than_the_model_has_is_a_problem(local):
    found = the_problem(model_findings(local, is_offline=False, opened=lambda *_: HashEmbedder()))

    assert "dimension 16 instead of 384" in found.detail


# Ray


@pytest.fixture
def ray_looks(tmp_path, data, monkeypatch):
    monkeypatch.setattr("memory.doctor.ray_runtime.is_installed", lambda _name: True)
    monkeypatch.setattr(metadata, "version", lambda _name: "2.60.0")

    def look(environment=None, config=""):
        if config:
            (tmp_path / "ray_config.yaml").write_text(config)
        return list(ray_findings(data, tmp_path / "config.yml", environment or {}, tmp_path))

    return look


def test_a_usual_machine_can_run_ray(ray_looks):
    assert set(states(ray_looks(config="cluster: {objectStoreMiB: 1}\n"))) == {"ok"}


@pytest.mark.parametrize(
    ("environment", "config", "said"),
    [
        ({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}, "", "all interfaces"),
        ({"RAY_AUTH_MODE": "disabled"}, "", "without a token"),
        ({}, "dashboard: {enabled: true, host: 0.0.0.0}\n", "dashboard listens on 0.0.0.0"),
        ({}, "cluster: {objectStoreMiB: 900000000}\n", "would use the disk"),
        ({}, "cluster: [\n", "ray_config.yaml:2"),
    ],
)
def test_what_ray_would_do_wrong_is_named(ray_looks, environment, config, said):
    assert said in the_problem(ray_looks(environment, config)).detail


def test_a_cluster_of_ones_own_has_ports_to_keep_private(ray_looks):
    findings = ray_looks({}, "cluster: {address: 'head:6379'}\n")

    assert [each.detail for each in findings if each.state == "note"] == [
        "joins the cluster at head:6379"
    ]


@pytest.mark.parametrize("version", ["2.51.9", "1.13.0"])
def test_a_ray_without_tokens_is_refused(ray_looks, monkeypatch, version):
    """FAULTS 78."""
    monkeypatch.setattr(metadata, "version", lambda _name: version)

    assert version in the_problem(ray_looks()).detail


def test_a_package_is_looked_for_and_not_imported():
    assert is_installed("json.tool")
    assert not is_installed("ray")  # see ``tests.no_ray``
    assert not is_installed("no_such_package.module")


def test_a_missing_ray_is_a_problem(ray_looks, monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)

    assert the_problem(ray_looks()).detail == "not installed"


def test_a_long_temporary_folder_is_left_for_a_short_one(ray_looks, tmp_path, monkeypatch):
    """FAULTS 74: the path of a socket has 107 bytes at most."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * 60)))

    (found,) = [each for each in ray_looks() if each.name == "temporary folder"]
    assert found.state == "ok"
    assert found.detail.startswith("/tmp/memory-")


def test_something_foreign_in_the_place_of_the_sockets_is_a_problem(ray_looks, monkeypatch):
    folder = Path(tempfile.mkdtemp(prefix="m")) / "place"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder))
        monkeypatch.setattr("memory.doctor.ray_runtime.private_folder", lambda _data: folder)

        assert "is not a folder of yours" in the_problem(ray_looks()).detail
    shutil.rmtree(folder.parent)


def test_an_unconfigured_model_is_not_probed(home, capsys):
    (home / "config.yml").write_text("memory:\n")

    assert main(["doctor", "--json"]) == 1
    names = [each["name"] for each in json.loads(capsys.readouterr().out)["findings"]]
    assert "model" not in names
