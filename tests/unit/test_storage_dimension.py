"""What is on disk where the dimension of the vectors is told late?"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from memory.checks import dump
from tests.doubles import HashEmbedder
from tests.unit.building import parsed, put, text_of
from tests.unit.keeping import opened

OLD = HashEmbedder(16)
UNTOLD = SimpleNamespace(info=replace(OLD.info, model="tells no dimension", dim=0))


@pytest.fixture
def kept(tmp_path):
    """An index with vectors of the old dimension in its snapshot and in its journal."""
    index, storage = opened(tmp_path, UNTOLD)
    put(index, OLD, parsed("a.md", ["One."]))
    storage.save(1.0)
    put(index, OLD, parsed("b.md", ["Two."]))
    return index, storage


def test_the_first_vectors_in_a_journal_tell_the_dimension(tmp_path):
    index, storage = opened(tmp_path, UNTOLD)
    storage.save(0.0)
    put(index, OLD, parsed("a.md", ["One."]))

    again, _ = opened(tmp_path, UNTOLD)

    assert again.dim == 16
    assert dump(again) == dump(index)


@pytest.mark.parametrize("saves", [False, True])
def test_vectors_that_no_file_holds_yet_may_be_the_first(tmp_path, saves):
    """Those of the first half of a long file."""
    index, storage = opened(tmp_path, UNTOLD)
    storage.save(0.0)
    file = parsed("long.md", ["One.", "Two."])
    first = file.chunks[0]
    index.keep((first.content_hash,), OLD.embed_documents([text_of(first)]))
    if saves:
        storage.save(1.0)

    again, _ = opened(tmp_path, UNTOLD)

    assert [chunk.content for chunk in again.plan(file).missing] == ["Two."]
    put(again, OLD, file)
    assert again.dim == 16


def test_keeping_no_vectors_costs_no_change_after_it(tmp_path, kept):
    index, _ = kept
    index.keep((), np.empty((0, 16), np.float32))
    put(index, OLD, parsed("c.md", ["Three."]))

    assert dump(opened(tmp_path, UNTOLD)[0]) == dump(index)
