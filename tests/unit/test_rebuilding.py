"""A rebuild: is every vector made anew, once, while the old index answers as ever?"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import chain

import pytest

from memory.bulk import build_batch
from memory.checks import dump
from memory.errors import StaleUpdate
from memory.identity import Identity, read_embedding_json, replaces
from memory.index_folders import KEPT_S, NEXT_NAME, PREVIOUS_NAME, identity_in, reusable
from memory.messages import FileUpdate
from memory.snapshot import SNAPSHOT_NAME
from memory.storage import IndexStorage
from tests.doubles import HashEmbedder
from tests.unit.building import ENGLISH, parsed, text_of
from tests.unit.successions import FILES, NOW, Memory, fresh, indexed

NUM_TEXTS = len(list(chain.from_iterable(FILES.values())))


class Mirrored(HashEmbedder):
    """The same model, in bad health: its vectors point the other way."""

    def embed_documents(self, texts):
        return -super().embed_documents(texts)


@pytest.fixture
def embedder():
    return HashEmbedder(16)


@pytest.fixture
def data(tmp_path, embedder):
    indexed(tmp_path, embedder)
    return tmp_path


def test_bad_vectors_are_gone_after_it(tmp_path, embedder):
    indexed(tmp_path, Mirrored(16))
    memory = Memory(tmp_path, embedder)
    assert dump(memory.newest) != fresh(HashEmbedder(16))

    assert memory.indexes.begin_rebuild(NOW)
    memory.put_all()
    assert memory.take_over()

    assert len(embedder.texts) == NUM_TEXTS
    assert dump(memory.newest) == fresh(embedder)


def test_the_old_index_answers_with_its_vectors_meanwhile(data, embedder):
    memory = Memory(data, embedder)
    before = memory.search("plums")

    memory.indexes.begin_rebuild(NOW)
    memory.put("a.md", FILES["a.md"])

    answer = memory.search("plums")
    assert (answer.hits, answer.degraded) == (before.hits, "")
    assert answer.hits[0].vector_score
    status = memory.indexes.status()
    assert (status.num_files, status.rebuild) == (3, 0)
    assert (status.building.num_files, status.building.rebuild) == (1, 1)


def test_an_edit_meanwhile_is_found_at_once(data, embedder):
    memory = Memory(data, embedder)
    memory.indexes.begin_rebuild(NOW)

    memory.put("b.md", ["Melons."], mtime_ns=7)
    memory.remove("c.md")
    batch = build_batch(ENGLISH, (parsed("d.md", ["Cherries."]), parsed("a.md", FILES["a.md"])))
    chunks = [chunk for file in batch.files for chunk in file.all_chunks()]
    hashes = tuple(chunk.content_hash for chunk in chunks)
    memory.indexes.add(batch, hashes, embedder.embed_documents([text_of(each) for each in chunks]))

    after = {"a.md": FILES["a.md"], "b.md": ["Melons."], "d.md": ["Cherries."]}
    assert memory.is_building
    assert memory.paths() == sorted(after)
    assert memory.found("melons")[0] == "b.md"
    assert memory.found("cherries")[0] == "d.md"
    assert memory.take_over()
    assert {path for path, *_ in dump(memory.newest)} == set(after)


def test_an_edit_that_relies_on_a_vector_of_the_new_index_waits_for_it(data, embedder):
    memory = Memory(data, embedder)
    memory.indexes.begin_rebuild(NOW)
    memory.put("d.md", ["Cherries."])
    memory.remove("d.md")
    memory.kill()
    memory = Memory(data, embedder)
    memory.indexes._now.old.index._state.cache.discard(
        bytes.fromhex(parsed("d.md", ["Cherries."]).chunks[0].content_hash)
    )

    memory.put("b.md", ["Cherries."], mtime_ns=7)

    assert memory.found("plums")[0] == "b.md"
    assert memory.newest.file("b.md").mtime_ns == 7


def test_kills_in_the_middle_cost_no_text_twice(data, embedder):
    Memory(data, embedder).indexes.begin_rebuild(NOW)
    for path, texts in FILES.items():
        memory = Memory(data, embedder)
        memory.put(path, texts)
        memory.kill()
    memory = Memory(data, embedder)
    assert memory.indexes.report.reason == (
        "a rebuild was asked for; every file is embedded, and the old index answers until then"
        " (3 files are done already)"
    )

    memory.put_all()
    assert memory.take_over()

    assert len(embedder.texts) == len(set(embedder.texts)) == NUM_TEXTS
    assert dump(memory.newest) == fresh(embedder)


def test_asking_again_in_the_middle_goes_on_with_the_one_that_was_begun(data, embedder):
    memory = Memory(data, embedder)
    assert memory.indexes.begin_rebuild(NOW)
    memory.put("a.md", FILES["a.md"])

    assert not memory.indexes.begin_rebuild(NOW)

    assert memory.newest.paths() == {"a.md"}


def test_beside_the_index_of_another_model_nothing_else_is_begun(data):
    memory = Memory(data, HashEmbedder(8))

    assert not memory.indexes.begin_rebuild(NOW)
    assert memory.indexes.status().building.rebuild == 0


def test_an_index_without_anything_needs_no_rebuild(tmp_path, embedder):
    memory = Memory(tmp_path, embedder)

    assert not memory.indexes.begin_rebuild(NOW)
    assert not (tmp_path / NEXT_NAME).exists()


def test_afterwards_a_restart_loads_it_and_a_rebuild_can_be_asked_for_again(data, embedder):
    for number in (1, 2):
        memory = Memory(data, embedder)
        assert memory.indexes.begin_rebuild(NOW)
        memory.put_all()
        assert memory.take_over()
        memory.put("d.md", ["Cherries."])
        memory.kill()
        assert identity_in(data).rebuild == number

    again = Memory(data, embedder)
    assert not again.is_building
    assert again.paths() == ["a.md", "b.md", "c.md", "d.md"]
    assert not (data / PREVIOUS_NAME).exists()
    assert read_embedding_json(data) is None  # the Persister's; it does not tell the number


def test_two_rebuilds_in_one_life_are_two_incarnations(data, embedder):
    memory = Memory(data, embedder)
    epochs = [memory.newest.epoch]

    for _number in range(2):
        memory.indexes.begin_rebuild(NOW)
        epochs.append(memory.newest.epoch)
        memory.put_all()
        assert memory.take_over()

    assert len(set(epochs)) == 3


def test_a_disk_that_refuses_the_beginning_leaves_everything_as_it_was(data, embedder, monkeypatch):
    memory = Memory(data, embedder)

    def refuse(*_arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(IndexStorage, "save", refuse)
        with pytest.raises(OSError, match="No space"):
            memory.indexes.begin_rebuild(NOW)

    assert not memory.is_building
    assert not (data / NEXT_NAME).exists()
    assert memory.indexes.begin_rebuild(NOW)


def test_a_broken_beginning_is_begun_again_with_its_number(data, embedder):
    """Else the next start would take it for an old one."""
    memory = Memory(data, embedder)
    memory.indexes.begin_rebuild(NOW)
    memory.put("a.md", FILES["a.md"])
    memory.save()
    memory.indexes._now.newest.storage.save(NOW)
    memory.kill()
    raw = bytearray((data / NEXT_NAME / SNAPSHOT_NAME).read_bytes())
    raw[20] ^= 1
    (data / NEXT_NAME / SNAPSHOT_NAME).write_bytes(raw)

    again = Memory(data, embedder)

    assert again.newest.paths() == set()
    assert again.newest.identity.rebuild == 1


def test_a_change_that_was_planned_before_is_planned_again(data, embedder):
    memory = Memory(data, embedder)
    assert not memory.indexes.plan(parsed("a.md", FILES["a.md"])).missing
    memory.indexes.begin_rebuild(NOW)

    with pytest.raises(StaleUpdate):
        memory.indexes.apply(FileUpdate("a.md", parsed("a.md", FILES["a.md"])))


def test_the_later_of_two_indexes_of_one_model_replaces_the_earlier(embedder):
    first = Identity.of(embedder.info)
    second = replace(first, rebuild=1)
    other = replace(first, model="other")

    assert replaces(second, first)
    assert not replaces(first, second)
    assert not replaces(first, first)
    assert replaces(other, second)


def _nothing(_data, _old, _new):
    pass


def _indexed(data, old, _new):
    indexed(data, old)


def _switching(data, old, new):
    indexed(data, old)
    half = Memory(data, new)
    half.save()
    half.put("a.md", FILES["a.md"])
    half.kill()


def _switched(data, old, new):
    _switching(data, old, new)
    memory = Memory(data, new)
    memory.put_all()
    memory.take_over()
    memory.kill()


def _rebuilding(data, old, _new):
    indexed(data, old)
    memory = Memory(data, old)
    memory.indexes.begin_rebuild(NOW)
    memory.put("a.md", FILES["a.md"])
    memory.kill()


@pytest.mark.parametrize("wanted", ["old", "new"])
@pytest.mark.parametrize("days", [0, 8])
@pytest.mark.parametrize("history", [_nothing, _indexed, _switching, _switched, _rebuilding])
def test_what_can_be_reused_is_what_the_next_start_goes_on_with(tmp_path, history, days, wanted):
    models = {"old": HashEmbedder(16), "new": HashEmbedder(8)}
    history(tmp_path, *models.values())
    if (tmp_path / PREVIOUS_NAME).exists():
        os.utime(tmp_path / PREVIOUS_NAME, (NOW, NOW))
    now = NOW + days * KEPT_S / 7
    configured = Identity.of(models[wanted].info)

    folder = reusable(tmp_path, configured=configured, now=now)
    before = identity_in(folder) if folder else None
    memory = Memory(tmp_path, models[wanted], now=now)

    found = memory.newest.identity if memory.newest.files() else None
    assert found == before
