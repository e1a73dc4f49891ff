"""Another model: does the old index answer until the new one does, and is nothing paid twice?"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from memory.bulk import build_batch
from memory.calibrating import Calibration, calibrate_at_once
from memory.checks import dump
from memory.errors import DimensionMismatch, StaleUpdate
from memory.index_folders import KEPT_S, NEXT_NAME, PREVIOUS_NAME, identity_in
from memory.journal import JOURNAL_NAME
from memory.messages import FileUpdate
from memory.snapshot import SNAPSHOT_NAME
from memory.storage import IndexStorage
from tests.doubles import HashEmbedder
from tests.unit.building import ENGLISH, parsed, text_of
from tests.unit.successions import FILES, NOW, Memory, fresh, indexed

NUM_TEXTS = len(list(chain.from_iterable(FILES.values())))


@pytest.fixture
def old():
    return HashEmbedder(16)


@pytest.fixture
def new():
    return HashEmbedder(8)


@pytest.fixture
def data(tmp_path, old):
    """A data folder with an index of the old model."""
    indexed(tmp_path, old)
    return tmp_path


def test_the_old_index_answers_by_words_until_the_new_one_is_complete(data, new):
    memory = Memory(data, new)
    memory.put("a.md", FILES["a.md"])

    answer = memory.search("plums")

    assert [hit.path for hit in answer.hits] == ["b.md"]
    assert answer.degraded == "vectors are being rebuilt (1 of 3 files)"
    assert {hit.vector_score for hit in answer.hits} == {0.0}
    assert memory.paths() == ["a.md", "b.md", "c.md"]
    status = memory.indexes.status()
    assert (status.model, status.dim, status.num_files) == ("hash-16", 16, 3)
    built = status.building
    assert (built.model, built.dim, built.num_files) == ("hash-8", 8, 1)


def test_a_complete_index_takes_over_with_its_vectors(data, new):
    memory = Memory(data, new)
    memory.put_all()

    assert memory.take_over()

    answer = memory.search("plums")
    assert (answer.hits[0].path, answer.degraded) == ("b.md", "")
    assert not memory.is_building
    assert identity_in(data).model == "hash-8"
    assert identity_in(data / PREVIOUS_NAME).model == "hash-16"
    assert not (data / NEXT_NAME).exists()


def test_changes_after_the_take_over_are_on_disk_as_ever(data, new):
    memory = Memory(data, new)
    memory.put_all()
    memory.take_over()
    memory.put("d.md", ["Cherries."])
    memory.kill()

    again = Memory(data, new)

    assert again.indexes.report.reason.startswith("embedding.json is missing")
    assert again.paths() == ["a.md", "b.md", "c.md", "d.md"]
    assert dump(again.newest) == fresh(new, FILES | {"d.md": ["Cherries."]})


def test_a_kill_in_the_middle_costs_nothing_that_was_paid_for(data, new):
    """SPEC E5: with a save in between and without one."""
    for path, texts in FILES.items():
        memory = Memory(data, new)
        memory.save()
        memory.put(path, texts)
        memory.kill()
    memory = Memory(data, new)
    assert memory.indexes.report.reason == (
        "model changed from hash-16 to hash-8, dimension changed from 16 to 8; every file is"
        " embedded, and the old index answers until then (3 files are done already)"
    )

    memory.put_all()
    memory.take_over()

    assert len(new.texts) == len(set(new.texts)) == NUM_TEXTS
    assert dump(memory.newest) == fresh(new)


def test_vectors_of_a_file_that_is_not_embedded_to_its_end_are_kept(data, new):
    file = parsed("a.md", FILES["a.md"])
    first = file.chunks[0]
    memory = Memory(data, new)
    memory.save()
    memory.indexes.keep((first.content_hash,), new.embed_documents([text_of(first)]))
    memory.kill()

    again = Memory(data, new)

    assert [chunk.content for chunk in again.indexes.plan(file).missing] == ["Pears."]


def test_the_old_index_follows_where_that_needs_no_vector(data, new):
    memory = Memory(data, new)
    memory.remove("a.md")
    memory.put("moved.md", FILES["b.md"])
    memory.remove("b.md")
    memory.put("c.md", FILES["c.md"], mtime_ns=7)

    assert memory.paths() == ["c.md", "moved.md"]
    assert memory.indexes.answering.file("c.md").mtime_ns == 7
    assert memory.found("apples") == []
    assert memory.found("plums") == ["moved.md"]
    memory.kill()
    assert Memory(data, new).paths() == ["c.md", "moved.md"]


def test_new_files_that_come_together_are_followed_as_single_ones_are(data, new):
    moved, changed, unknown = (
        parsed("moved.md", FILES["b.md"]),
        parsed("c.md", ["Melons."], mtime_ns=7),
        parsed("d.md", ["Cherries."]),
    )
    batch = build_batch(ENGLISH, (moved, changed, unknown))
    chunks = [file.chunks[0] for file in (moved, changed, unknown)]
    memory = Memory(data, new)

    memory.indexes.add(
        batch,
        tuple(chunk.content_hash for chunk in chunks),
        new.embed_documents([text_of(chunk) for chunk in chunks]),
    )

    assert memory.paths() == ["a.md", "b.md", "c.md", "moved.md"]
    assert memory.newest.paths() == {"moved.md", "c.md", "d.md"}


def test_an_edited_file_keeps_its_old_hits_whose_time_is_not_that_of_the_file(data, new):
    """SPEC S6: whoever compares it with the disk says that the file has changed."""
    memory = Memory(data, new)

    memory.put("b.md", ["Melons."], mtime_ns=7)

    (hit,) = memory.search("plums").hits
    assert (hit.path, hit.mtime_ns) == ("b.md", 1)
    assert memory.found("melons") == []


def test_a_comparison_with_the_disk_is_told_what_each_index_knows(data, new):
    memory = Memory(data, new)
    memory.put("b.md", FILES["b.md"])

    known = memory.indexes.files_to_compare()

    assert [file.path for file in known.newest] == ["b.md"]
    assert [file.path for file in known.old] == ["a.md", "b.md", "c.md"]


@pytest.mark.slow
@pytest.mark.parametrize("days", [0, 6.9, 7.1])
def test_switching_back_within_a_week_embeds_what_changed_since(data, old, new, days):
    there = Memory(data, new)
    there.put_all()
    there.take_over()
    there.put("b.md", ["Melons."], mtime_ns=7)
    there.remove("c.md")
    there.kill()
    os.utime(data / PREVIOUS_NAME, (NOW, NOW))

    back = Memory(data, old, now=NOW + days * 86_400)
    back.put("a.md", FILES["a.md"])
    back.put("b.md", ["Melons."], mtime_ns=7)
    known = back.indexes.files_to_compare()
    for path in {file.path for file in (*known.newest, *known.old)} - {"a.md", "b.md"}:
        back.remove(path)

    assert (days * 86_400 > KEPT_S) == (len(old.texts) == 3)
    assert back.take_over()
    if days * 86_400 <= KEPT_S:
        assert len(old.texts) == 1
        assert "Melons." in old.texts[0]
    assert dump(back.newest) == fresh(old, {"a.md": FILES["a.md"], "b.md": ["Melons."]})
    assert identity_in(data / PREVIOUS_NAME).model == "hash-8"


def test_a_change_of_mind_in_the_middle_costs_nothing_either(data, old, new):
    memory = Memory(data, new)
    memory.save()
    memory.put("a.md", FILES["a.md"])
    memory.kill()

    back = Memory(data, old)
    assert not back.is_building
    assert (back.found("apples")[0], back.search("apples").degraded) == ("a.md", "")
    back.kill()
    again = Memory(data, new)
    again.put_all()

    assert len(new.texts) == NUM_TEXTS
    assert old.texts == []


def test_a_third_model_in_the_middle_starts_anew_beside_the_old_index(data, new):
    memory = Memory(data, new)
    memory.save()
    memory.put("a.md", FILES["a.md"])
    memory.kill()
    third = HashEmbedder(4)

    memory = Memory(data, third)

    assert memory.newest.files() == ()
    assert memory.found("apples") == ["a.md"]
    memory.put_all()
    assert memory.take_over()
    assert dump(memory.newest) == fresh(third)


def test_without_memory_msp_everything_is_embedded_anew(data, old, new):
    """FAULTS 12: what was kept for another occasion does not come back."""
    memory = Memory(data, new)
    memory.put_all()
    memory.take_over()
    memory.kill()
    half = Memory(data, HashEmbedder(4))
    half.save()
    half.kill()
    assert (data / NEXT_NAME).exists()
    assert (data / PREVIOUS_NAME).exists()
    (data / SNAPSHOT_NAME).unlink()

    assert Memory(data, old).paths() == []
    assert not (data / NEXT_NAME).exists()
    assert not (data / PREVIOUS_NAME).exists()


@pytest.mark.parametrize("position", [0.5, -1])
def test_a_broken_old_index_makes_way_for_what_was_built(data, new, position):
    """FAULTS 8: in a part or in the header; what was paid for the new one counts."""
    memory = Memory(data, new)
    memory.save()
    memory.put("a.md", FILES["a.md"])
    memory.kill()
    raw = bytearray((data / SNAPSHOT_NAME).read_bytes())
    raw[int(position * len(raw)) if position > 0 else -1] ^= 1
    (data / SNAPSHOT_NAME).write_bytes(raw)

    again = Memory(data, new)

    assert not again.is_building
    assert again.paths() == ["a.md"]
    assert "kept as memory.msp.bad-" in again.indexes.report.reason
    assert again.indexes.report.reason.endswith("the index that was being built goes on")
    again.put_all()
    assert len(new.texts) == NUM_TEXTS
    again.kill()
    assert dump(Memory(data, new).newest) == fresh(new)
    assert not (data / NEXT_NAME).exists()


@pytest.mark.parametrize(
    ("num_files", "num_missing", "takes_over"),
    [(1, 1, False), (2, 1, True), (3, 2, False), (42, 2, True), (42, 3, False)],
)
def test_few_failing_files_do_not_hold_it_for_ever_and_an_outage_does(
    tmp_path, old, new, num_files, num_missing, takes_over
):
    files = {f"{number}.md": [f"Text {number}."] for number in range(num_files)}
    memory = Memory(tmp_path, old)
    memory.put_all(files)
    memory.save()
    memory.kill()
    memory = Memory(tmp_path, new)
    memory.put_all(dict(list(files.items())[num_missing:]))

    patiently = memory.indexes.take_over(memory.newest.epoch, NOW)

    assert not patiently
    assert memory.take_over() == takes_over


@pytest.mark.slow
def test_it_waits_for_calibrated_scores_unless_it_is_urgent(data, new):
    memory = Memory(data, new)
    memory.put_all()
    assert not memory.indexes.take_over(memory.newest.epoch, NOW)

    calibrate_at_once(
        memory.indexes.calibrate, lambda texts: np.stack([new.embed_query(text) for text in texts])
    )

    assert memory.indexes.take_over(memory.newest.epoch, NOW)
    assert memory.indexes.calibrate(None) is Calibration.NOTHING
    memory.kill()
    assert Memory(data, new).indexes.status().threshold is not None


def test_who_saw_another_index_does_not_make_this_one_take_over(data, new):
    memory = Memory(data, new)
    memory.put_all()

    assert not memory.indexes.take_over("before a restart", NOW, is_urgent=True)
    assert memory.take_over()
    assert not memory.take_over()


def test_a_change_beside_the_saves_is_not_lost(data, new, monkeypatch):
    """It is tried again; what the first try saved is only older than the index."""
    memory = Memory(data, new)
    memory.put_all()
    real = IndexStorage.save

    def save_slowly(storage, *arguments):
        revision = real(storage, *arguments)
        memory.put("d.md", ["Cherries."])
        return revision

    with monkeypatch.context() as patch:
        patch.setattr(IndexStorage, "save", save_slowly)
        assert not memory.take_over()

    assert memory.is_building
    assert memory.take_over()
    memory.kill()
    assert dump(Memory(data, new).newest) == fresh(new, FILES | {"d.md": ["Cherries."]})


@pytest.fixture
def untold(old):
    """A model that does not tell its dimension."""
    return replace(old.info, model="untold", dim=0)


@pytest.fixture
def unknown(tmp_path, old, untold):
    """A data folder with vectors of dimension 16 of that model."""
    memory = Memory(tmp_path, old, info=untold)
    memory.save()
    memory.put_all()
    memory.save()
    memory.kill()
    old.texts.clear()
    return tmp_path


def test_an_answer_of_another_dimension_begins_another_index(unknown, untold, new):
    """FAULTS 59: no row has a vector of another dimension, and the old index answers."""
    memory = Memory(unknown, new, info=untold)
    with pytest.raises(StaleUpdate):
        memory.put("d.md", ["Cherries."])
    assert memory.is_building
    assert memory.found("plums") == ["b.md"]

    memory.put("d.md", ["Cherries."])
    memory.put_all()

    assert len(new.texts) == len(set(new.texts)) == NUM_TEXTS + 1
    assert memory.take_over()
    assert memory.search("plums").degraded == ""
    assert dump(memory.newest) == fresh(new, FILES | {"d.md": ["Cherries."]})


def test_a_long_file_begins_it_with_its_first_part(unknown, untold, new):
    file = parsed("long.md", ["Cherries.", "Melons."])
    memory = Memory(unknown, new, info=untold)

    first = file.chunks[0]
    memory.indexes.keep((first.content_hash,), new.embed_documents([text_of(first)]))

    assert memory.is_building
    assert [chunk.content for chunk in memory.indexes.plan(file).missing] == ["Melons."]


def test_a_question_of_another_dimension_is_answered_by_words(unknown, untold, new):
    memory = Memory(unknown, new, info=untold)

    answer = memory.search("plums")

    assert [hit.path for hit in answer.hits] == ["b.md"]
    assert answer.degraded == "the model answers with another dimension than it did"


@pytest.mark.parametrize("knows_it", [False, True])
def test_it_goes_on_after_a_kill_though_the_configuration_tells_no_dimension(
    unknown, untold, new, knows_it
):
    memory = Memory(unknown, new, info=untold)
    assert memory.indexes.begin(8)
    if knows_it:
        memory.put("a.md", FILES["a.md"])
    memory.save()
    memory.kill()

    again = Memory(unknown, new, info=untold)
    again.put_all()

    assert again.is_building
    assert len(new.texts) == NUM_TEXTS
    assert again.take_over()


def test_a_model_that_answers_as_before_ends_the_other_index(unknown, untold, old, new):
    memory = Memory(unknown, new, info=untold)
    memory.indexes.begin(8)
    memory.put("a.md", FILES["a.md"])
    memory.save()
    memory.kill()

    again = Memory(unknown, old, info=untold)
    with pytest.raises(StaleUpdate):
        again.put("d.md", ["Cherries."])
    again.put("d.md", ["Cherries."])

    assert not again.is_building
    assert len(old.texts) == 1
    assert again.search("plums").degraded == ""
    again.kill()
    assert Memory(unknown, old, info=untold).paths() == ["a.md", "b.md", "c.md", "d.md"]


def test_a_model_that_changes_its_mind_all_the_time_begins_one_index(unknown, untold, old, new):
    memory = Memory(unknown, new, info=untold)
    with pytest.raises(StaleUpdate):
        memory.put("a.md", ["Cherries."], mtime_ns=7)
    memory.embedder = old

    with pytest.raises(DimensionMismatch):
        memory.put("b.md", ["Melons."], mtime_ns=7)


def test_a_dimension_that_is_configured_is_not_given_up_for_an_answer(data, old):
    memory = Memory(data, old)
    file = parsed("d.md", ["Cherries."])

    with pytest.raises(DimensionMismatch):
        memory.indexes.apply(
            FileUpdate("d.md", file, (file.chunks[0].content_hash,), np.ones((1, 9), np.float32))
        )
    assert not memory.is_building


def test_a_confirmed_dimension_changes_nothing(data, old):
    memory = Memory(data, old)

    assert not memory.indexes.begin(16)
    assert not memory.is_building
    assert (data / JOURNAL_NAME).exists()
