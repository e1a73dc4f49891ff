"""What does ``memory doctor`` say of a daemon, and of how it follows the files?"""

from __future__ import annotations

import os

import pytest

from memory.data_lock import data_lock
from memory.doctor import daemon as daemon_looks
from memory.doctor.daemon import daemon_status, following_findings
from memory.doctor.watching import watching_findings
from memory.status_payloads import blank_status
from tests.unit.fake_daemon import fake_daemon
from tests.unit.findings import NOW, saved, states, the_problem
from tests.unit.workspace_files import workspace, write


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return folder


# Daemon


@pytest.fixture
def daemon(data):
    with fake_daemon(data) as daemon:
        yield daemon


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
