"""Are the rows of a text always found, whatever happened since the index was loaded?"""

from __future__ import annotations

from random import Random

import pytest

from memory.row_hashes import RowHashes

# Two of them begin with the same bytes.
HASHES = [bytes(8) + bytes([number]) * 24 for number in range(2)]
HASHES += [bytes([number]) * 32 for number in range(2, 6)]


def loaded(content: dict[int, bytes]) -> RowHashes:
    hashes = RowHashes(content.get)
    hashes.load(b"".join(content.values()), list(content))
    return hashes


def test_loaded_rows_are_found_by_the_whole_hash():
    hashes = loaded({7: HASHES[0], 3: HASHES[1], 5: HASHES[0], 1: HASHES[5]})

    assert hashes.rows(HASHES[0]) == {5, 7}
    assert hashes.rows(HASHES[1]) == {3}
    assert hashes.rows(HASHES[5]) == {1}
    assert hashes.rows(HASHES[4]) == set()


def test_an_empty_index_holds_nothing():
    assert loaded({}).rows(HASHES[0]) == set()


@pytest.mark.parametrize("max_later", [2, 4_096])
@pytest.mark.parametrize("seed", range(20))
def test_any_history_gives_the_rows_that_hold_the_text_now(monkeypatch, seed, max_later):
    """Rows are freed, reused for other texts and given their old text again."""
    monkeypatch.setattr("memory.row_hashes._MAX_LATER", max_later)
    chance = Random(seed)
    content = {row: chance.choice(HASHES) for row in range(chance.choice([0, 8]))}
    hashes = loaded(content)
    for _ in range(60):
        row = chance.randrange(10)
        if row in content:
            hashes.remove(content.pop(row), row)
        else:
            content[row] = chance.choice(HASHES)
            hashes.add(content[row], row)

        for name in HASHES:
            assert hashes.rows(name) == {each for each, held in content.items() if held == name}


def test_many_rows_that_come_and_go_leave_no_more_than_those_there_are(monkeypatch):
    monkeypatch.setattr("memory.row_hashes._MAX_LATER", 4)
    content: dict[int, bytes] = {}
    hashes = RowHashes(content.get)
    for number in range(200):
        row = number % 10
        if row in content:
            hashes.remove(content.pop(row), row)
        content[row] = number.to_bytes(32)
        hashes.add(content[row], row)

    assert [hashes.rows(name) for name in content.values()] == [{row} for row in content]
    assert len(hashes._later) + len(hashes._keys) <= 2 * len(content) + 1
