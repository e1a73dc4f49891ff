"""Does a dump show what an index holds, and nothing about how it came to be?"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from memory.checks import DumpRow, dump
from memory.messages import FileUpdate
from tests.doubles import HashEmbedder
from tests.unit.building import chunk, new_index, parsed, put


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_row_names_everything_by_its_hash():
    index = new_index(HashEmbedder(dim=2))
    file = replace(parsed("a.md"), chunks=(chunk("Body.", headlines="# H", context="C."),))
    vector = np.array([[0.6, 0.8]], np.float32)
    index.apply(FileUpdate("a.md", file, (file.chunks[0].content_hash,), vector))

    assert dump(index) == [
        DumpRow("a.md", 0, "# H", sha256(b"C."), sha256(b"Body."), sha256(vector.tobytes()))
    ]


def test_the_order_of_files_and_of_sections_does_not_matter_but_their_number_does():
    embedder = HashEmbedder()
    one, other, more = (new_index(embedder) for _ in range(3))
    put(one, embedder, parsed("a.md", ["One.", "Two.", "One."]))
    put(one, embedder, parsed("b.md", ["One."]))
    put(other, embedder, parsed("b.md", ["One."]))
    put(other, embedder, parsed("a.md", ["Two.", "One.", "One."]))
    put(more, embedder, parsed("b.md", ["One."]))
    put(more, embedder, parsed("a.md", ["Two.", "One."]))

    assert dump(one) == dump(other)
    assert dump(one) != dump(more)
