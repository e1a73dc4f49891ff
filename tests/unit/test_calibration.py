"""Do scores mean the same with every model and in every workspace?"""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.calibrating import Calibration
from memory.calibration import NEUTRAL, Reference, meaning, threshold_of, threshold_of_parts
from memory.fusion import Weights
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.messages import FileUpdate, Query
from memory.row_noise import RowNoise
from memory.snapshot import SNAPSHOT_NAME, SnapshotFile, write
from memory.unrelated_prompts import unrelated_prompts
from tests.doubles import HashEmbedder
from tests.unit.building import ENGLISH, image_of, parsed

LANGUAGES = unrelated_prompts()
PROMPTS = tuple(chain.from_iterable(LANGUAGES))
DIM = 32
EMBEDDER = HashEmbedder(DIM)


def vectors_of(prompts=PROMPTS) -> np.ndarray:
    return np.stack([EMBEDDER.embed_query(prompt) for prompt in prompts])


def indexed(contents: dict[str, list[str]], *, weights: Weights | None = None) -> MemoryIndex:
    settings = IndexSettings(weights=weights or Weights())
    index = MemoryIndex(EMBEDDER.info, ENGLISH, settings, epoch="e")
    for path, texts in contents.items():
        write_file(index, path, texts)
    return index


def write_file(index: MemoryIndex, path: str, texts: list[str]) -> None:
    file = parsed(path, texts)
    chunks = {chunk.content_hash: chunk for chunk in index.plan(file).missing}
    vectors = EMBEDDER.embed_documents([chunk.content for chunk in chunks.values()])
    index.apply(FileUpdate(path, file, tuple(chunks), vectors))


def calibrate(index: MemoryIndex) -> int:
    """Goes all steps; returns how many."""
    need, count = index.calibrate(), 1
    while need is not Calibration.NOTHING:
        need = index.calibrate(vectors_of() if need is Calibration.VECTORS else None)
        count += 1
    return count


def test_the_prompts_are_the_same_in_each_language_and_none_occurs_twice():
    assert len(LANGUAGES) >= 10
    assert len({len(language) for language in LANGUAGES}) == 1
    assert len(set(PROMPTS)) == len(PROMPTS)
    assert all(prompt == prompt.strip() and prompt for prompt in PROMPTS)


def test_texts_that_resemble_all_prompts_have_much_noise():
    """A row along a direction that the prompts of one language share, and one across it."""
    common = np.eye(DIM, dtype=np.float32)[0]
    vectors = vectors_of()
    first = slice(len(LANGUAGES[0]))
    vectors[first] = 0.8 * common + 0.6 * vectors[first]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    reference = Reference(vectors)

    along, across = reference.noise_of(np.stack([common, np.eye(DIM, dtype=np.float32)[1]]))

    # The eight nearest of its own: computed by hand from float64.
    expected = np.sort(vectors[first].astype(np.float64) @ common)[-8:].mean()
    assert along == pytest.approx(expected, abs=1e-3)
    assert along > 0.8 > across >= np.float32(reference.base)


def test_the_base_is_that_of_the_language_whose_prompts_differ_most():
    """Orthogonal prompts in one language, equal ones in the others."""
    dim = len(LANGUAGES[0])
    alike = np.tile(np.eye(dim, dtype=np.float32)[0], (len(PROMPTS), 1))
    alike[dim : 2 * dim] = np.eye(dim, dtype=np.float32)

    assert Reference(alike).base == 0


@pytest.mark.parametrize("change", [lambda v: v[1:], lambda v: v[0], lambda v: v * np.nan])
def test_vectors_of_something_else_are_refused(change):
    with pytest.raises(ValueError, match="unrelated prompts"):
        Reference(change(vectors_of()))


def test_the_threshold_is_what_one_prompt_in_twenty_of_a_language_reaches():
    levels = np.zeros((len(LANGUAGES), len(LANGUAGES[0])))
    levels[3] = np.linspace(0, 0.5, len(LANGUAGES[0]))

    assert threshold_of(levels.ravel()) == pytest.approx(0.95 * 0.5)


def test_a_prompt_whose_chatter_says_nothing_keeps_the_threshold():
    assert threshold_of_parts(0.3, [0.0] * 16 + [0.9, 0.1]) == 0.3


def test_chatter_that_resembles_the_workspace_raises_the_threshold_to_twice_of_it():
    levels = [0.1] * 14 + [0.2] * 5 + [0.9]  # four fifths are 0.2 or less

    assert threshold_of_parts(0.3, levels) == pytest.approx(0.4)


def test_a_prompt_that_is_all_about_the_workspace_passes_the_raised_threshold():
    few, many = (threshold_of_parts(0.3, [0.9] * count) for count in (2, 20))

    assert many == pytest.approx(1 - 0.7 ** (1 + math.log(20) / 2))
    assert 0.3 < few < many < 0.9


@given(st.floats(0.01, 0.99), st.lists(st.floats(0, 1), min_size=1, max_size=24))
def test_a_threshold_is_raised_and_stays_below_one(threshold, levels):
    raised = threshold_of_parts(threshold, levels)

    assert threshold <= raised < 1
    assert threshold_of_parts(threshold, levels[:1]) == pytest.approx(threshold)


def test_prompts_that_the_workspace_answers_do_not_raise_the_threshold():
    """Quartiles .1 and .2: twice their distance beyond the upper one is .4."""
    num = len(LANGUAGES[0])
    usual = np.where(np.arange(num) < num / 2, 0.1, 0.2)
    levels = np.tile(usual, (len(LANGUAGES), 1))
    levels[0, -3:] = 0.9

    assert threshold_of(levels.ravel()) == pytest.approx(0.4)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 0.99))
def test_meaning_is_monotone_and_puts_the_threshold_at_the_documented_floor(one, other, threshold):
    low, high = sorted((one, other))

    assert 0 <= meaning(low, threshold) <= meaning(high, threshold) <= 1
    assert meaning(threshold, threshold) == pytest.approx(NEUTRAL)
    assert (meaning(0, threshold), meaning(1, threshold)) == (0, 1)


def test_rows_have_the_noise_of_the_model_until_they_are_measured():
    noise, block = RowNoise(0.1), EMBEDDER.embed_documents(["a", "b", "c"])
    noise.put([0, 1, 2], block)
    rows = np.array([2, 0])
    assert noise.take(rows).tolist() == pytest.approx([0.1, 0.1])

    reference = Reference(vectors_of())
    noise.learn(reference, 3)
    assert noise.take(rows).tolist() == pytest.approx([reference.base] * 2)
    noise.put([0], block[:1])

    expected = [reference.base, float(reference.noise_of(block[:1])[0])]
    assert noise.take(rows).tolist() == pytest.approx(expected)


def test_prompts_about_something_else_stay_below_the_floor_after_the_calibration():
    # Each prompt has a section with all its words, and so an answer without a calibration.
    index = indexed({f"{n}.md": [prompt] for n, prompt in enumerate(LANGUAGES[0])})

    def num_above() -> int:
        answers = [
            index.search(Query(text, 1), EMBEDDER.embed_query(f"asked {text}")).hits
            for text in LANGUAGES[0]
        ]
        return sum(hits[0].score > NEUTRAL for hits in answers)

    assert index.search(Query("x", 1), None).threshold is None
    assert num_above() > len(LANGUAGES[0]) / 2

    calibrate(index)

    assert num_above() <= 2
    assert index.search(Query("x", 1), None).threshold == index.status().threshold


def test_calibrating_goes_in_steps_and_again_when_the_index_has_changed():
    index = indexed({})
    assert index.calibrate() is Calibration.NOTHING

    write_file(index, "a.md", ["one text"])
    assert index.calibrate() is Calibration.VECTORS
    assert index.calibrate(vectors_of()) is Calibration.STEPS
    assert calibrate(index) > 10
    assert index.calibrate() is Calibration.NOTHING

    write_file(index, "b.md", ["another text"])
    assert index.calibrate() is Calibration.STEPS
    assert calibrate(index) > 10


def test_vectors_of_another_dimension_are_refused():
    index = indexed({"a.md": ["text"]})
    other = HashEmbedder(DIM // 2)

    with pytest.raises(ValueError, match="another dimension"):
        index.calibrate(np.stack([other.embed_query(prompt) for prompt in PROMPTS]))


def test_a_calibration_comes_back_with_the_snapshot(tmp_path):
    index = indexed({f"{n}.md": [f"text {n}", f"more {n}"] for n in range(20)})
    calibrate(index)
    write_file(index, "new.md", ["after the calibration"])
    write(tmp_path / SNAPSHOT_NAME, image_of(index), saved_at=0.0)

    with SnapshotFile(tmp_path / SNAPSHOT_NAME) as snapshot:
        again = MemoryIndex.restore(snapshot, EMBEDDER.info, ENGLISH, IndexSettings(), epoch="e")

    assert again.calibrate() is Calibration.NOTHING
    assert again.status().threshold == index.status().threshold is not None
    for text in ("text 3", "after the calibration", "nothing of it"):
        vector = EMBEDDER.embed_query(text)
        assert again.search(Query(text, 5), vector) == index.search(Query(text, 5), vector)


def test_a_calibration_with_other_prompts_or_weights_is_made_again(tmp_path, monkeypatch):
    index = indexed({"a.md": ["text"]})
    calibrate(index)
    write(tmp_path / SNAPSHOT_NAME, image_of(index), saved_at=0.0)

    def restored(settings: IndexSettings) -> MemoryIndex:
        with SnapshotFile(tmp_path / SNAPSHOT_NAME) as snapshot:
            return MemoryIndex.restore(snapshot, EMBEDDER.info, ENGLISH, settings, epoch="e")

    other = restored(IndexSettings(weights=Weights(1, 0)))
    assert other.search(Query("text", 1), None).threshold is None
    assert other.calibrate() is Calibration.STEPS
    monkeypatch.setattr("memory.calibration_image.VERSION", -1)
    assert restored(IndexSettings()).calibrate() is Calibration.VECTORS
