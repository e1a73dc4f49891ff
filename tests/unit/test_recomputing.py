"""A vector that the model would not make of the files now is found; each text costs one call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from memory.checking import HeldIndex
from memory.recomputing import Estimate, Recomputing
from memory.vector_index import VectorIndex
from tests.doubles import HashEmbedder
from tests.unit.indexed_files import LIMITS, indexed, parsed_now
from tests.unit.workspace_files import workspace, write

if TYPE_CHECKING:
    from pathlib import Path

    from memory.index import MemoryIndex

NAMES = [f"{number}.md" for number in range(5)]


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in NAMES:
        write(tmp_path, name, b"# A\n\nOf all files.\n\n## B\n\nOnly of " + name.encode())
    return tmp_path


def found(
    root: Path, index: MemoryIndex, embedder: HashEmbedder, *, is_exact: bool = True
) -> list[tuple[str, str]]:
    recomputing = Recomputing(workspace(root), LIMITS, embedder, is_exact)
    return [(each.path, each.detail) for each in recomputing.differences(HeldIndex(index), NAMES)]


def turned(index: MemoryIndex, path: str, by: float) -> None:
    """Turns the vector of the second section of a file a little."""
    row = index._state.table[path].rows[1]
    vector = index._state.vectors.take([row]) + by * np.eye(1, 16, dtype=np.float32)
    index._state.vectors.put([row], vector / np.linalg.norm(vector))


def test_the_vectors_that_the_model_makes_now_are_no_difference(root: Path, embedder: HashEmbedder):
    assert found(root, indexed(root, embedder), embedder) == []


def test_each_text_is_embedded_once_however_many_files_hold_it(
    root: Path, embedder: HashEmbedder, monkeypatch
):
    monkeypatch.setattr("memory.recomputing.MAX_PAGE_CHUNKS", 4)  # several fresh indexes
    index, again, estimate = indexed(root, embedder), HashEmbedder(), Estimate(LIMITS)
    for name in NAMES:
        estimate.add(parsed_now(root, name))

    assert found(root, index, again) == []
    assert len(again.texts) == len(set(again.texts)) == estimate.num_texts == 6
    assert estimate.num_tokens == sum(map(LIMITS.count, again.texts))


@pytest.mark.parametrize(
    ("by", "is_exact", "said"),
    [
        (0.3, True, "has a vector of cosine 0.9"),
        (0.3, False, "has a vector of cosine 0.9"),
        (0.001, True, "not the same byte by byte"),
        (0.001, False, None),
    ],
)
def test_another_vector_is_a_difference_as_far_as_the_model_gives_the_same_ones(
    root: Path, embedder: HashEmbedder, by: float, is_exact: bool, said: str | None
):
    index = indexed(root, embedder)
    turned(index, "3.md", by)

    differences = found(root, index, embedder, is_exact=is_exact)

    assert [path for path, _ in differences] == ["3.md"] * (said is not None)
    assert said is None or said in differences[0][1]


def test_a_text_that_the_provider_refused_is_not_sent_again(root: Path, embedder: HashEmbedder):
    index, again = indexed(root, embedder), HashEmbedder()
    index._state.vectors.put([index._state.table["2.md"].rows[1]], np.zeros((1, 16), np.float32))

    assert found(root, index, again, is_exact=False) == []
    assert not any("2.md" in text for text in again.texts)


def test_a_large_index_is_compared_with_vectors_as_it_holds_them(
    root: Path, embedder: HashEmbedder, monkeypatch
):
    monkeypatch.setattr("memory.vector_memory.FLOAT16_FROM", 1)
    index = indexed(root, embedder)
    assert index.inspect().value_type == "float16"
    monkeypatch.undo()

    assert found(root, index, embedder) == []
    assert VectorIndex(16).dtype == np.float32


def test_a_file_that_changed_meanwhile_is_left_out(root: Path, embedder: HashEmbedder):
    index = indexed(root, embedder)
    write(root, "1.md", b"# Other\n")
    (root / "2.md").unlink()

    assert found(root, index, embedder) == []


def test_requests_keep_the_limits_of_the_provider(root: Path):
    embedder = HashEmbedder()
    limits = replace(embedder.info.limits, max_inputs=1)
    index = indexed(root, embedder)
    again = HashEmbedder()
    again.info = replace(again.info, limits=limits)

    assert found(root, index, again) == []
    assert again.num_calls == len(again.texts) == 6
