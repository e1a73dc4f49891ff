"""Does damage to the index that is built, or to the one it took over from, cost only that one?"""

from __future__ import annotations

import os

import pytest

from memory.checks import dump
from memory.index_folders import NEXT_NAME, PREVIOUS_NAME
from memory.journal import JOURNAL_NAME
from memory.snapshot import SNAPSHOT_NAME
from tests.doubles import HashEmbedder
from tests.unit.building import new_index, parsed, put
from tests.unit.successions import Memory

OLD, NEW = HashEmbedder(4), HashEmbedder(2)
FILES = {"a.md": ["One."], "b.md": ["Two."]}


def built(folder, embedder, files):
    memory = Memory(folder, embedder)
    memory.save()
    memory.put_all(files)
    return memory


def fresh(embedder, files):
    index = new_index(embedder)
    for path, texts in files.items():
        put(index, embedder, parsed(path, texts))
    return dump(index)


@pytest.fixture
def building(tmp_path):
    """A whole old index and half of the next one, of which one file is in its journal alone."""
    old = built(tmp_path, OLD, FILES)
    old.save()
    old.kill()
    new = Memory(tmp_path, NEW)
    new.save()
    new.put("a.md", FILES["a.md"])
    new.kill()
    return tmp_path


@pytest.fixture
def replaced(tmp_path):
    """An index that took the place of another one."""
    built(tmp_path, OLD, FILES).kill()
    new = Memory(tmp_path, NEW)
    new.put_all(FILES)
    assert new.take_over()
    new.kill()
    return tmp_path


def damages(data, every):
    """Yields contents with one byte flipped, and shortened ones."""
    for position in range(0, len(data), every):
        flipped = bytes([data[position] ^ 1 << position % 8])
        yield data[:position] + flipped + data[position + 1 :]
        yield data[:position]
    yield b""
    yield os.urandom(1_000)


def left_in(path):
    return {each: each.read_bytes() for each in path.rglob("*") if each.is_file()}


def restored(path, files):
    for each in path.rglob("*"):
        if each.is_file() and each not in files:
            each.unlink()
    for each, content in files.items():
        each.parent.mkdir(exist_ok=True)
        each.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "every"), [(SNAPSHOT_NAME, 97), (JOURNAL_NAME, 23)])
def test_a_damaged_next_index_is_built_anew_while_the_old_one_answers(building, name, every):
    """FAULTS 8 to 10."""
    before = left_in(building)
    for content in damages(before[building / NEXT_NAME / name], every):
        restored(building, before)
        (building / NEXT_NAME / name).write_bytes(content)
        again = Memory(building, NEW)

        assert dump(again.indexes.answering) == fresh(OLD, FILES)
        assert again.newest.paths() <= {"a.md"}
        if again.newest.paths():
            assert dump(again.newest) == fresh(NEW, {"a.md": FILES["a.md"]})
        again.put_all(FILES)
        assert again.take_over()
        assert dump(again.newest) == fresh(NEW, FILES)
        again.kill()


@pytest.mark.slow
def test_damage_to_the_replaced_index_is_nothing_to_the_one_that_answers(replaced):
    """FAULTS 8 to 10: whoever switches back starts with what can be read, or anew."""
    before = left_in(replaced)
    for content in damages(before[replaced / PREVIOUS_NAME / SNAPSHOT_NAME], 197):
        restored(replaced, before)
        (replaced / PREVIOUS_NAME / SNAPSHOT_NAME).write_bytes(content)
        again = Memory(replaced, NEW)
        assert dump(again.indexes.answering) == fresh(NEW, FILES)
        again.kill()
        back = Memory(replaced, OLD)

        assert dump(back.indexes.answering) == fresh(NEW, FILES)
        assert back.newest.paths() in (set(), set(FILES))
        back.put_all(FILES)
        assert back.take_over()
        assert dump(back.newest) == fresh(OLD, FILES)
        back.kill()
