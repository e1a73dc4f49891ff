"""``memory check`` from the command line to its exit code, on disk and beside a daemon."""

from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import replace

import pytest

from memory import snapshot
from memory.chunk_limits import chunk_limits
from memory.cli import main
from memory.config import MemorySettings
from memory.errors import DaemonError
from memory.index_check import DaemonIndex
from memory.inspection_payload import inspect_payload
from memory.journal import JOURNAL_NAME
from memory.providers.factory import model_info
from memory.saved_checks import saved_faults
from memory.status_payloads import blank_status
from tests.doubles import HashEmbedder
from tests.unit.building import image_of
from tests.unit.fake_daemon import fake_daemon
from tests.unit.indexed_files import indexed
from tests.unit.workspace_files import write

LOCAL = model_info("local", "all-minilm-l6-v2")
CONFIG = "memory: {embeddings: {provider: local}}\n"
REMOTE_CONFIG = (
    "memory: {embeddings: {provider: gate, model: m}}\n"
    "inference: {customProviders: {gate: {type: openai-compatible, baseUrl: 'http://x/v1'}}}\n"
)


def as_model(info):
    embedder = HashEmbedder(384)
    embedder.info = info
    return embedder


@pytest.fixture
def embedder():
    return as_model(LOCAL)


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "data" / "memory").mkdir(parents=True)
    (home / "config.yml").write_text(CONFIG)
    monkeypatch.setenv("MEMORY_HOME", str(home))
    monkeypatch.setattr("memory.commands.check.time.sleep", lambda _seconds: None)
    return home


@pytest.fixture
def root(tmp_path):
    for name in ("a.md", "wiki/b.md"):
        write(tmp_path / "notes", name, b"# A\n\nFirst.\n\n## B\n\nIn " + name.encode())
    return tmp_path / "notes"


@pytest.fixture
def index(root, embedder):
    return indexed(root, embedder, chunk_limits(None, LOCAL))


@pytest.fixture
def saved(home, index):
    """The data folder with the saved index."""
    data = home / "data" / "memory"
    snapshot.write(data / "memory.msp", image_of(index), saved_at=1.0)
    return data


def checked(capsys, *argv):
    code = main(["check", "--json", *argv])
    return code, json.loads(capsys.readouterr().out)


def test_a_saved_index_of_the_files_is_ok(saved, capsys):
    code, answer = checked(capsys)

    assert code == 0
    assert answer == {
        "ok": True,
        "differences": [],
        "source": "disk",
        "files": 2,
        "chunks": 4,
        "unsettled": [],
        "recomputed": None,
    }


def test_what_differs_is_named_and_the_exit_code_is_1(saved, root, capsys):
    write(root, "new.md")
    (root / "a.md").unlink()

    code, answer = checked(capsys)
    assert code == 1
    assert [(each["kind"], each["path"]) for each in answer["differences"]] == [
        ("extra", "a.md"),
        ("missing", "new.md"),
    ]

    assert main(["check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 differences in 2 files, 4 chunks \u2014 source: disk"
    assert lines[2] == "- missing: `new.md` is not in the index"


def test_excluded_files_need_not_be_there(saved, home, root, capsys):
    (home / "config.yml").write_text(
        "memory: {embeddings: {provider: local}, excludeGlobs: ['draft*']}\n"
    )
    write(root, "drafts/new.md")

    assert checked(capsys)[0] == 0


def test_the_files_may_lie_elsewhere_than_they_were_indexed(saved, root, tmp_path, capsys):
    root.rename(tmp_path / "moved")
    assert checked(capsys)[1]["differences"][0]["kind"] == "workspace"

    assert checked(capsys, "--workspace", str(tmp_path / "moved"))[0] == 0


def test_an_index_of_another_model_than_the_configured_one_is_a_difference(saved, home, capsys):
    (home / "config.yml").write_text(REMOTE_CONFIG)

    code, answer = checked(capsys)

    assert code == 1
    assert [each["kind"] for each in answer["differences"]] == ["model"]


@pytest.mark.slow
def test_every_flipped_byte_of_what_was_saved_shows(saved, capsys):
    path = saved / "memory.msp"
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 16):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])

        code, answer = checked(capsys)

        assert code == 1
        assert "snapshot" in {each["kind"] for each in answer["differences"]}, place


def test_a_torn_journal_shows_unless_its_end_is_being_written(saved, index):
    journal = saved / JOURNAL_NAME
    journal.write_bytes(b"garbage")
    assert [fault.kind for fault in saved_faults(saved, lambda _s: None)] == ["journal"]

    assert saved_faults(saved, lambda _s: journal.unlink(missing_ok=True)) == []


def test_without_an_index_it_fails_with_one_line(home, capsys):
    assert main(["check"]) == 1
    assert capsys.readouterr().err.startswith("memory: no index at ")


def test_a_model_of_ones_own_embeds_everything_again(saved, embedder, monkeypatch, capsys):
    monkeypatch.setattr("memory.providers.factory.open_embedder", lambda *_: embedder)
    before = embedder.num_calls

    code, answer = checked(capsys, "--rebuild-compare")

    assert (code, answer["recomputed"]) == (0, 3)
    assert embedder.num_calls > before


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_a_terminal_shows_how_many_texts_are_embedded_again(saved, embedder, monkeypatch, stream):
    monkeypatch.setattr("memory.providers.factory.open_embedder", lambda *_: embedder)
    monkeypatch.setattr(sys, "stderr", stream)

    assert main(["check", "--rebuild-compare"]) == 0

    steps = re.findall(r"\r\x1b\[Kmemory: (\d+) of (\d+) texts", stream.getvalue())
    if stream.isatty():
        done = [int(done) for done, _total in steps]
        assert done == sorted(set(done))
        assert steps[-1][0] == steps[-1][1]
        assert stream.getvalue().endswith("\r\x1b[K")
    else:
        assert stream.getvalue() == ""


@pytest.fixture
def remote(home, root, monkeypatch):
    """A saved index of a model behind a network; the model."""
    (home / "config.yml").write_text(REMOTE_CONFIG)
    info = replace(LOCAL, provider="gate", model="m", base_url="http://x/v1")
    made = as_model(info)
    limits = chunk_limits(None, info)
    image = image_of(indexed(root, made, limits))
    snapshot.write(home / "data" / "memory" / "memory.msp", image, saved_at=1.0)
    again = as_model(info)
    monkeypatch.setattr("memory.providers.factory.open_embedder", lambda *_: again)
    return again


def test_a_provider_is_not_paid_without_consent(remote, capsys):
    assert main(["check", "--rebuild-compare"]) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("memory: gate would be paid for 3 texts, about ")
    assert remote.texts == []


def test_a_provider_is_paid_with_consent_for_each_text_once(remote, capsys):
    assert main(["check", "--rebuild-compare", "--yes", "--json"]) == 0

    captured = capsys.readouterr()
    assert json.loads(captured.out)["recomputed"] == len(remote.texts) == 3
    assert "sends 3 texts" in captured.err


@pytest.fixture
def daemon(saved):
    with fake_daemon(saved) as daemon:
        yield daemon


def told(index, root, *, is_building=False, **options):
    settings = MemorySettings()
    found = index.inspect(**options)
    return inspect_payload(found, settings, workspace=str(root), is_building=is_building)


def test_a_running_daemon_is_asked_page_by_page(daemon, index, root, capsys):
    daemon.will_answer(told(index, root, paths=[]))
    daemon.will_answer(told(index, root))
    daemon.will_answer(told(index, root, after="wiki/b.md"))

    code, answer = checked(capsys)

    assert (code, answer["source"], answer["files"]) == (0, "daemon", 2)
    assert [request.get("after") for request in daemon.requests] == [None, "", "wiki/b.md"]


def test_what_a_daemon_cannot_index_has_its_reason(daemon, index, root, capsys, monkeypatch):
    write(root, "new.md")
    hours = iter(range(0, 3600 * 100, 3600))
    monkeypatch.setattr("memory.commands.check.time.monotonic", lambda: next(hours))
    daemon.will_answer(told(index, root, paths=[]))
    daemon.will_answer(told(index, root))
    daemon.will_answer(told(index, root, after="wiki/b.md"))
    daemon.will_answer(told(index, root, paths=["new.md"]))
    failed = {"path": "new.md", "stage": "embed", "reason": "quota", "attempts": 2, "retry_at": 0}
    daemon.will_answer(blank_status("ready") | {"failed": [failed]})

    code, answer = checked(capsys)

    assert code == 1
    assert answer["differences"] == [
        {
            "kind": "missing",
            "path": "new.md",
            "detail": "is not in the index; embed failed: quota",
        }
    ]


def test_while_another_index_is_built_the_old_one_need_not_follow(daemon, index, root, capsys):
    write(root, "new.md")
    for paths in ([], None):
        daemon.will_answer(told(index, root, is_building=True, paths=paths))

    assert [each["kind"] for each in checked(capsys)[1]["differences"]] == ["building"]


@pytest.mark.parametrize(
    ("changed", "kind"), [({"rebuild": 1}, "missing"), ({"model": "another"}, "building")]
)
def test_a_rebuild_leaves_the_saved_index_to_be_what_the_files_are(
    saved, index, root, capsys, changed, kind
):
    parts = image_of(index)
    following = replace(parts.info, identity=replace(parts.info.identity, **changed))
    (saved / "next").mkdir()
    snapshot.write(saved / "next/memory.msp", replace(parts, info=following), saved_at=2.0)
    write(root, "new.md")

    assert [each["kind"] for each in checked(capsys)[1]["differences"]] == [kind]


def test_vectors_arrive_over_the_socket_as_they_are(saved, index, root):
    def ask(_data, _command, _timeout, **args):
        return json.loads(json.dumps(told(index, root, paths=args["paths"], wants_vectors=True)))

    here = index.inspect(paths=["a.md"], wants_vectors=True)
    there = DaemonIndex(saved, ask).named(["a.md"], wants_vectors=True)

    assert there.vectors.tobytes() == here.vectors.tobytes()
    assert (there.hashes, there.records, there.identity) == (
        here.hashes,
        here.records,
        here.identity,
    )


def test_a_daemon_of_another_version_is_told_so(saved):
    with pytest.raises(DaemonError, match="another version"):
        DaemonIndex(saved, lambda *_, **__: {"files": 3})
