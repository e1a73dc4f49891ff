"""What the owner of a data folder does with whatever it finds there (FAULTS 8-13)."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from memory.analysis import Analyzer
from memory.config import EmbeddingsSettings, MemorySettings
from memory.identity import EMBEDDING_JSON, Identity, write_embedding_json
from memory.index import MemoryIndex
from memory.index_opening import open_or_create
from memory.index_settings import IndexSettings
from memory.journal import JOURNAL_NAME
from memory.messages import Query
from memory.snapshot import SNAPSHOT_NAME, read_header
from memory.storage import OLD_JOURNAL_NAME, IndexStorage
from tests.doubles import HashEmbedder
from tests.unit.building import parsed, put

if TYPE_CHECKING:
    from pathlib import Path

MODEL = HashEmbedder().info
SETTINGS = MemorySettings(embeddings=EmbeddingsSettings(provider="local"))
NOW = 1_700_000_000.0


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder as a daemon leaves it: one file of one chunk."""
    index = MemoryIndex(MODEL, Analyzer("english"), IndexSettings(), epoch="before")
    put(index, HashEmbedder(), parsed("a.md", ["Ships sailed."]))
    storage = IndexStorage(tmp_path, index, saved_revision=-1, saved_at=0.0, complete=False)
    storage.save(NOW)
    storage.stop_logging()
    write_embedding_json(tmp_path, index.identity)
    return tmp_path


def opened(data: Path, *, model=MODEL, settings=SETTINGS):
    found = open_or_create(settings, model, data=data, workspace=data, epoch="after", now=NOW)
    return [file.path for file in found.index.files()], found.report, found.index


def set_aside(data: Path) -> list[str]:
    return [path.name for path in data.iterdir() if ".bad-" in path.name]


def test_what_was_saved_is_there_again_and_needs_nothing(data):
    paths, report, _index = opened(data)

    assert paths == ["a.md"]
    assert (report.needs_probe, report.reason) == (False, "")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.unlink(), "memory.wal is missing; "),
        (lambda path: path.write_bytes(b""), "memory.wal: "),
        (lambda path: path.write_bytes(b"garbage" * 20), "memory.wal: "),
        (lambda path: (path.unlink(), path.mkdir()), "memory.wal: "),
    ],
    ids=["missing", "empty", "garbage", "folder"],
)
@pytest.mark.parametrize("old_is_a_folder", [False, True])
def test_a_journal_that_is_lost_is_told_and_a_new_one_begun(data, damage, said, old_is_a_folder):
    """Even if a folder has the name under which the old one is kept."""
    if old_is_a_folder:
        (data / OLD_JOURNAL_NAME / "inside").mkdir(parents=True)
    damage(data / JOURNAL_NAME)

    found = open_or_create(SETTINGS, MODEL, data=data, workspace=data, epoch="after", now=NOW)

    assert said in found.report.reason
    assert found.report.reason.endswith("; what it alone held is indexed again")
    put(found.index, HashEmbedder(), parsed("b.md", ["Anchors."]))
    found.storage.save(NOW)
    put(found.index, HashEmbedder(), parsed("c.md", ["Sails."]))
    found.storage.stop_logging()
    paths, report, _index = opened(data)
    assert (paths, report.reason) == (["a.md", "b.md", "c.md"], "")
    assert (data / OLD_JOURNAL_NAME / "inside").exists() == old_is_a_folder


@pytest.mark.parametrize("old_is_a_folder", [False, True])
def test_only_the_last_journal_that_was_lost_is_kept(data, old_is_a_folder):
    """A disk that goes bad must not fill itself."""
    if old_is_a_folder:
        (data / OLD_JOURNAL_NAME).mkdir()
    for number in range(4):
        (data / JOURNAL_NAME).write_bytes(b"garbage %d" % number)
        found = open_or_create(SETTINGS, MODEL, data=data, workspace=data, epoch="e", now=NOW)
        found.storage.stop_logging()

    kept = [path for path in data.glob(f"{OLD_JOURNAL_NAME}*") if path.is_file()]
    assert [path.read_bytes() for path in kept] == [b"garbage 3"]


def test_an_empty_folder_gives_an_empty_index_and_a_reason(tmp_path):
    paths, report, _index = opened(tmp_path)

    assert paths == []
    assert report.needs_probe
    assert report.reason == "there is no saved index; every file is embedded"


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: b"\0" * 64,
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
        lambda raw: raw[:100] + bytes([raw[100] ^ 128]) + raw[101:],
        lambda raw: b"not ours at all, " + raw,
    ],
    ids=["empty", "zeros", "half", "last bit", "header bit", "other magic"],
)
def test_an_unreadable_snapshot_is_set_aside_once_and_built_anew(data, damage):
    """FAULTS 8, 9, 10: no error reaches the daemon, and nothing is thrown away."""
    path = data / SNAPSHOT_NAME
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)

    paths, report, _index = opened(data)

    assert paths == []
    assert len(set_aside(data)) == 1
    assert (data / set_aside(data)[0]).read_bytes() == damaged
    assert not path.exists()
    assert "kept as memory.msp.bad-" in report.reason
    assert opened(data)[0] == []
    assert len(set_aside(data)) == 1


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ENOMEM, errno.EACCES])
def test_a_snapshot_that_cannot_be_opened_now_is_left_for_later(data, monkeypatch, number):
    """Its vectors were paid for, and the error says nothing about them."""

    def refuse(_path, _flags):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr("memory.atomic_file.open_at_once", refuse)
        with pytest.raises(OSError, match=os.strerror(number)):
            opened(data)

    assert set_aside(data) == []
    assert opened(data)[0] == ["a.md"]


def test_a_snapshot_that_cannot_be_read_now_is_left_for_later(data, monkeypatch):
    with monkeypatch.context() as patch:
        # Reading what is open for writing alone is an error of the system.
        patch.setattr("memory.atomic_file.open_at_once", lambda path, _: os.open(path, os.O_WRONLY))
        with pytest.raises(OSError, match=SNAPSHOT_NAME):
            opened(data)

    assert set_aside(data) == []
    assert opened(data)[0] == ["a.md"]


def test_memory_that_runs_out_while_a_snapshot_is_mapped_does_not_set_it_aside(data, monkeypatch):
    def refuse(*_arguments, **_options):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    with monkeypatch.context() as patch:
        patch.setattr("memory.snapshot.mmap.mmap", refuse)
        with pytest.raises(OSError, match=SNAPSHOT_NAME):
            opened(data)

    assert set_aside(data) == []
    assert opened(data)[0] == ["a.md"]


def test_a_snapshot_of_another_format_version_is_set_aside(data):
    """FAULTS 13."""
    path = data / SNAPSHOT_NAME
    raw = bytearray(path.read_bytes())
    raw[8] += 1
    path.write_bytes(raw)

    paths, report, _index = opened(data)

    assert paths == []
    assert "format 4, expected 3" in report.reason
    assert len(set_aside(data)) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "other"}, "model changed from hash-16 to other"),
        ({"provider": "other"}, "provider changed from fake to other"),
        ({"dim": 32}, "dimension changed from 16 to 32"),
        ({"base_url": "http://127.0.0.1/"}, "base URL changed from none to http://127.0.0.1/"),
    ],
)
def test_another_identity_starts_empty_beside_the_old_one_with_the_reason(data, change, reason):
    found = open_or_create(
        SETTINGS, replace(MODEL, **change), data=data, workspace=data, epoch="after", now=NOW
    )

    assert found.index.files() == ()
    assert [file.path for file in found.old.index.files()] == ["a.md"]
    assert found.report.reason == (
        f"{reason}; every file is embedded, and the old index answers until then"
    )
    assert set_aside(data) == []


def test_an_empty_index_of_another_model_is_simply_replaced(tmp_path):
    """There is nothing that could answer meanwhile; new files are found at once."""
    opened(tmp_path)
    index = MemoryIndex(MODEL, Analyzer("english"), IndexSettings(), epoch="before")
    IndexStorage(tmp_path, index, saved_revision=-1, saved_at=0.0, complete=False).save(NOW)

    found = open_or_create(
        SETTINGS, replace(MODEL, model="b"), data=tmp_path, workspace=tmp_path, epoch="e", now=NOW
    )

    assert found.old is None
    assert found.report.reason == "model changed from hash-16 to b; every file is embedded"


def test_texts_that_are_put_together_otherwise_are_another_identity(data, monkeypatch):
    """The version that a snapshot names is that of its vectors, however often it is saved."""
    monkeypatch.setattr("memory.identity.INPUT_FORMAT_VERSION", 7)

    found = open_or_create(SETTINGS, MODEL, data=data, workspace=data, epoch="after", now=NOW)
    found.old.storage.save(NOW)

    assert "input format changed from 1 to 7" in found.report.reason
    assert read_header(data / SNAPSHOT_NAME).info.identity.input_format == 1


def test_another_language_rebuilds_the_text_half_without_any_embedding(data):
    """SPEC E5."""
    german = SETTINGS.model_copy(update={"language": "german"})

    paths, report, index = opened(data, settings=german)

    assert paths == ["a.md"]
    assert report.reason == ""
    assert [hit.path for hit in index.search(Query("ships", 5), None).hits] == ["a.md"]


def test_a_removed_embedding_json_asks_for_one_trial_call_and_keeps_the_index(data):
    """FAULTS 12."""
    (data / EMBEDDING_JSON).unlink()

    paths, report, _index = opened(data)

    assert paths == ["a.md"]
    assert report.needs_probe


def test_a_removed_snapshot_embeds_anew_without_a_trial_call(data):
    """FAULTS 12."""
    (data / SNAPSHOT_NAME).unlink()

    paths, report, _index = opened(data)

    assert paths == []
    assert not report.needs_probe
    assert report.reason == "there is no saved index; every file is embedded"


@pytest.mark.parametrize("content", [b"", b"{", b'{"provider": 1}', b"[" * 100_000])
def test_a_nonsense_embedding_json_counts_as_removed(data, content):
    """FAULTS 11: the header inside the snapshot is the truth."""
    (data / EMBEDDING_JSON).write_bytes(content)

    paths, report, _index = opened(data)

    assert paths == ["a.md"]
    assert report.needs_probe


OTHER = replace(MODEL, model="other")
NOBODY, ONE = set(), {"a.md"}
ON_DISK = {
    # embedding.json of, memory.msp of: answers, newest, trial call; MODEL is configured
    (MODEL, MODEL): (ONE, ONE, False),
    (OTHER, MODEL): (ONE, ONE, False),
    (None, MODEL): (ONE, ONE, True),
    (MODEL, OTHER): (ONE, NOBODY, False),
    (OTHER, OTHER): (ONE, NOBODY, True),
    (None, OTHER): (ONE, NOBODY, True),
    (MODEL, None): (NOBODY, NOBODY, False),
    (OTHER, None): (NOBODY, NOBODY, True),
    (None, None): (NOBODY, NOBODY, True),
}


@pytest.mark.parametrize(("state", "expected"), ON_DISK.items(), ids=range(9))
def test_the_header_of_the_snapshot_decides_which_index_answers(tmp_path, state, expected):
    """FAULTS 11: nine of nine, with the vectors of the configured model or with none."""
    recorded, saved = state
    if saved:
        index = MemoryIndex(saved, Analyzer("english"), IndexSettings(), epoch="before")
        put(index, HashEmbedder(), parsed("a.md", ["Ships sailed."]))
        storage = IndexStorage(tmp_path, index, saved_revision=-1, saved_at=0.0, complete=False)
        storage.save(NOW)
        storage.stop_logging()
    if recorded:
        write_embedding_json(tmp_path, Identity.of(recorded))
    found = open_or_create(
        SETTINGS, MODEL, data=tmp_path, workspace=tmp_path, epoch="after", now=NOW
    )

    answering = found.old.index if found.old else found.index
    assert (answering.paths(), found.index.paths(), found.report.needs_probe) == expected
    assert bool(found.report.reason) == (state != (MODEL, MODEL))


FOREIGN = {
    # As msgpack and as JSON; what another engine makes of a few documents.
    "orama": b"\x86\xb7internalDocumentIDStore\x91\xa1a\xa5index\x80\xa4docs\x82\xa4docs\x80\xa5"
    b"count\x00\xa8sorting\x80\xa6pinning\x80\xa8language\xa7english",
    "orama as json": b'{"internalDocumentIDStore":{"internalIdToId":["a"]},"index":{},"docs":{}}',
    "an earlier version": b"\x89MSP\r\n\x1a\n\x02\x00\x00\x00" + bytes(500),
    "a later version": b"\x89MSP\r\n\x1a\n\x09\x00\x00\x00" + bytes(500),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_snapshot_of_somebody_else_is_set_aside_with_the_reason(data, content, caplog):
    """FAULTS 13."""
    (data / SNAPSHOT_NAME).write_bytes(content)

    paths, report, _index = opened(data)

    assert paths == []
    (name,) = set_aside(data)
    assert (data / name).read_bytes() == content
    assert re.search(r"not a snapshot of this product|format \d, expected 3", report.reason)
    assert f"kept as {name}" in report.reason
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert report.reason.startswith(caplog.records[0].message.strip())


def test_an_embedding_json_that_disagrees_does_not_win_over_the_header(data):
    """FAULTS 11."""
    write_embedding_json(data, replace(opened(data)[2].identity, model="other"))

    paths, report, _index = opened(data)

    assert paths == ["a.md"]
    assert "out of date" in report.reason
