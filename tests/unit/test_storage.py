"""Is every change that was answered on disk, and what is read always one generation?"""

from __future__ import annotations

import errno
import random

import pytest

from memory import storage as module
from memory.checks import dump
from memory.errors import SnapshotMissing
from memory.journal import JOURNAL_NAME
from memory.messages import FileUpdate
from memory.reader import SnapshotReader
from memory.recovery import open_saved
from memory.snapshot import SNAPSHOT_NAME
from memory.storage import OLD_JOURNAL_NAME, IndexStorage
from tests.doubles import HashEmbedder
from tests.unit.building import new_index, parsed, put, remove, text_of
from tests.unit.keeping import opened


@pytest.fixture
def embedder():
    return HashEmbedder()


@pytest.fixture
def kept(tmp_path, embedder):
    """An index that was saved empty and goes on in its journal."""
    index, storage = opened(tmp_path, embedder)
    storage.save(0.0)
    return index, storage


def rows(index):
    return {file.path: file.rows for file in index._state.table.files()}


@pytest.mark.parametrize("seed", range(6))
def test_any_history_is_there_again_after_a_restart(tmp_path, seed):
    """SPEC P2: with saves anywhere in between; rows too, as later records refer to them."""
    chance, embedder = random.Random(seed), HashEmbedder()
    index, storage = opened(tmp_path, embedder)
    storage.save(0.0)
    for step in range(30):
        path = f"{chance.randrange(4)}.md"
        texts = [f"Text {chance.randrange(12)}." for _ in range(chance.randrange(6))]
        with storage.changing:
            if chance.random() < 0.2:
                remove(index, path)
            else:
                put(index, embedder, parsed(path, texts, mtime_ns=step, first_line=step + 1))
        if chance.random() < 0.15:
            storage.save(float(step))

    again, _ = opened(tmp_path, embedder)
    with SnapshotReader(tmp_path) as reader:
        listed = reader.files()
        shown = [reader.chunks(file.path) for file in listed]

    assert (dump(again), rows(again), again.revision) == (dump(index), rows(index), index.revision)
    assert listed == index.files()
    assert shown == [index.chunks(file.path) for file in listed]
    assert dict(again._state.cache).keys() == dict(index._state.cache).keys()


def test_what_changes_while_a_snapshot_is_written_is_neither_lost_nor_doubled(
    tmp_path, kept, embedder, monkeypatch
):
    index, storage = kept
    put(index, embedder, parsed("a.md", ["One.", "Two."]))
    real = module.write

    def write_slowly(path, parts, **options):
        put(index, embedder, parsed("a.md", ["Two.", "Three."], mtime_ns=2))
        put(index, embedder, parsed("b.md", ["Four."]))
        real(path, parts, **options)
        remove(index, "b.md")

    monkeypatch.setattr(module, "write", write_slowly)
    saved = storage.save(1.0)
    again, _ = opened(tmp_path, embedder)

    assert saved == index.revision - 3
    assert dump(again) == dump(index)
    assert again.revision == index.revision


def test_vectors_of_half_a_file_survive(tmp_path, kept, embedder):
    """No embedding is paid for twice, not even those of a file that was never applied."""
    index, _ = kept
    file = parsed("long.md", ["One.", "Two.", "Three."])
    first = file.chunks[:2]
    index.keep(
        tuple(chunk.content_hash for chunk in first),
        embedder.embed_documents([text_of(chunk) for chunk in first]),
    )

    again, _ = opened(tmp_path, embedder)

    assert [chunk.content for chunk in again.plan(file).missing] == ["Three."]


def test_without_its_snapshot_a_journal_does_not_count(tmp_path, kept, embedder):
    """Who removes memory.msp wants everything anew."""
    index, _ = kept
    put(index, embedder, parsed("a.md", ["One."]))
    (tmp_path / SNAPSHOT_NAME).unlink()

    again, storage = opened(tmp_path, embedder)

    assert again.files() == ()
    assert not (tmp_path / JOURNAL_NAME).exists()
    assert (tmp_path / OLD_JOURNAL_NAME).exists()
    assert storage.status().needs_save
    with pytest.raises(SnapshotMissing):
        open_saved(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"not a journal", b"\0" * 200])
def test_a_journal_that_is_none_costs_only_its_changes(tmp_path, kept, embedder, damage):
    index, storage = kept
    put(index, embedder, parsed("a.md", ["One."]))
    storage.save(1.0)
    (tmp_path / JOURNAL_NAME).write_bytes(damage)

    with SnapshotReader(tmp_path) as reader:
        assert [file.path for file in reader.files()] == ["a.md"]
    again, storage = opened(tmp_path, embedder)
    assert dump(again) == dump(index)
    assert storage.status().needs_save
    storage.save(2.0)
    put(again, embedder, parsed("b.md", ["Two."]))
    assert dump(opened(tmp_path, embedder)[0]) == dump(again)


def test_a_refused_record_makes_a_snapshot_due(tmp_path, kept, embedder, monkeypatch):
    index, storage = kept

    def refuse(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.JournalWriter, "append", refuse)
        put(index, embedder, parsed("a.md", ["One."]))
    put(index, embedder, parsed("b.md", ["Two."]))

    assert (storage.status().is_complete, storage.status().needs_save) == (False, True)
    storage.save(1.0)
    put(index, embedder, parsed("c.md", ["Three."]))
    assert storage.status().is_complete
    assert dump(opened(tmp_path, embedder)[0]) == dump(index)


def test_a_journal_that_nobody_could_shorten_for_long_takes_no_more(
    tmp_path, kept, embedder, monkeypatch
):
    """What it took is there, what came after it waits for the snapshot that is due."""
    index, storage = kept
    put(index, embedder, parsed("a.md", ["One."]))
    taken = storage.status().journal_bytes
    monkeypatch.setattr("memory.storage._LONGEST_JOURNAL_BYTES", taken + 10)
    put(index, embedder, parsed("b.md", ["Two."]))
    put(index, embedder, parsed("c.md", ["Three."]))

    assert (tmp_path / JOURNAL_NAME).stat().st_size == taken
    assert storage.status().needs_save
    assert "File too large" in storage.status().trouble
    assert opened(tmp_path, embedder)[0].paths() == {"a.md"}
    storage.save(2.0)
    put(index, embedder, parsed("d.md", ["Four."]))
    assert opened(tmp_path, embedder)[0].paths() == {"a.md", "b.md", "c.md", "d.md"}


def test_changes_beside_the_save_that_begins_a_journal_are_in_it(tmp_path, embedder, monkeypatch):
    """Else an index that changes all the time would never have one."""
    index, storage = opened(tmp_path, embedder)
    put(index, embedder, parsed("a.md", ["One."]))
    real = module.write

    def write_slowly(path, parts, **options):
        put(index, embedder, parsed("b.md", ["Two."]))
        real(path, parts, **options)
        put(index, embedder, parsed("c.md", ["Three."]))

    monkeypatch.setattr(module, "write", write_slowly)
    storage.save(1.0)

    assert storage.status().is_complete
    assert dump(opened(tmp_path, embedder)[0]) == dump(index)


def test_a_save_that_fails_keeps_no_changes_for_a_journal(tmp_path, embedder, monkeypatch):
    """The next image has them."""
    index, storage = opened(tmp_path, embedder)

    def refuse(*_arguments, **_options):
        put(index, embedder, parsed("a.md", ["One."]))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "write", refuse)
        with pytest.raises(OSError, match="space"):
            storage.save(1.0)
    put(index, embedder, parsed("b.md", ["Two."]))
    storage.save(2.0)
    put(index, embedder, parsed("c.md", ["Three."]))

    assert storage.status().is_complete
    assert dump(opened(tmp_path, embedder)[0]) == dump(index)


def test_a_small_edit_needs_no_save_and_many_do(kept, embedder):
    """SPEC P3."""
    index, storage = kept
    put(index, embedder, parsed("a.md", [f"Section {number}." for number in range(200)]))
    storage.save(1.0)
    put(index, embedder, parsed("b.md", ["One."]))
    assert not storage.status().needs_save

    put(index, embedder, parsed("c.md", [f"Other {number}." for number in range(200)]))

    assert storage.status().needs_save


def test_applying_the_same_update_twice_writes_one_record(kept, embedder):
    index, storage = kept
    put(index, embedder, parsed("a.md", ["One."]))
    before = storage.status().journal_bytes

    put(index, embedder, parsed("a.md", ["One."]))
    index.apply(FileUpdate("unknown.md", None))

    assert storage.status().journal_bytes == before


def test_an_index_of_another_model_takes_no_changes_from_the_journal(tmp_path, kept, embedder):
    index, _ = kept
    put(index, embedder, parsed("a.md", ["One."]))
    other = HashEmbedder(8)

    again, _ = opened(tmp_path, other)

    assert again.files() == ()
    assert [file.path for file in opened(tmp_path, embedder)[0].files()] == ["a.md"]


def test_merges_go_on_beside_a_save(tmp_path, embedder):
    index = new_index(embedder)
    storage = IndexStorage(tmp_path, index, saved_revision=-1, saved_at=0.0, complete=False)
    for number in range(40):
        put(index, embedder, parsed(f"{number}.md", [f"Word {number}."]))

    storage.save(1.0)

    assert index.text.num_segments == 1
    assert dump(opened(tmp_path, embedder)[0]) == dump(index)
