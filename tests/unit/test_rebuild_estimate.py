"""Is the price that is named before a rebuild the price that is paid?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.batching import first_request
from memory.embedding_input import TokenLimits
from memory.errors import WorkspaceMissing
from memory.file_system import OsFileSystem
from memory.index_folders import NEXT_NAME, PREVIOUS_NAME
from memory.markdown import parse_file
from memory.providers.base import RequestLimits
from memory.reader import SnapshotReader
from memory.rebuild_estimate import RebuildEstimate, RequestTally, embedded_texts
from memory.rebuild_rendering import estimate_markdown
from memory.snapshot import SNAPSHOT_NAME
from tests.doubles import HashEmbedder
from tests.unit.building import parsed, text_of
from tests.unit.successions import FILES, NOW, Memory, indexed
from tests.unit.workspace_files import Refusing, workspace, write

LIMITS = TokenLimits(512, lambda text: len(text.split()))
MODEL = replace(HashEmbedder(16).info, provider="openai")


def estimated(root, *, model=MODEL, embedded=frozenset(), file_system=None, **options):
    estimate = RebuildEstimate(model, LIMITS, embedded)
    estimate.add_all(workspace(root, file_system=file_system or OsFileSystem()))
    return estimate.payload(**options)


def test_equal_texts_are_counted_once_and_blank_files_cost_nothing(tmp_path):
    write(tmp_path, "a.md", b"# One\n\nfirst words here\n")
    write(tmp_path, "b.md", b"# One\n\nfirst words here\n")
    write(tmp_path, "c.md", b"# Two\n\nother\n")
    write(tmp_path, "empty.md", b"")

    answer = estimated(tmp_path)

    assert (answer["files"], answer["chunks"], answer["to_embed"]) == (4, 3, 2)
    assert answer["tokens"] == answer["left_tokens"]
    assert answer["calls"] == 1
    assert (answer["reused"], answer["left_to_embed"]) == (0, 2)


def test_what_is_counted_is_what_the_model_is_sent(tmp_path):
    """The oracle embeds the files, and counts what it was given."""
    embedder = HashEmbedder(16)
    for number in range(5):
        write(tmp_path / "ws", f"{number}.md", f"# T {number}\n\n## Same\n\nequal text\n".encode())
        write(tmp_path / "ws", f"copy/{number}.md", f"# T {number}\n\nword {number}\n".encode())
    place = workspace(tmp_path / "ws")
    (tmp_path / "data").mkdir()
    memory = Memory(tmp_path / "data", embedder)
    for stamp in place.scan().files:
        memory.put_file(parse_file(place.read(stamp.raw_path), limits=LIMITS))

    answer = estimated(tmp_path / "ws")

    assert answer["to_embed"] == len(embedder.texts)
    assert answer["tokens"] == sum(len(text.split()) for text in embedder.texts)
    assert answer["chunks"] == memory.indexes.status().num_chunks


@given(
    st.lists(st.integers(0, 30)),
    st.integers(1, 6),
    st.integers(1, 40),
)
def test_requests_are_those_that_the_planner_makes(sizes, max_inputs, max_tokens):
    tally = RequestTally(RequestLimits(max_inputs, max_tokens, 1))
    for size in sizes:
        tally.add(size)
    waiting, num_requests = list(sizes), 0
    while waiting:
        del waiting[: first_request(waiting, max_inputs=max_inputs, max_tokens=max_tokens)]
        num_requests += 1

    assert tally.num_requests == num_requests
    assert (tally.num_texts, tally.num_tokens) == (len(sizes), sum(sizes))


def test_prices_are_per_million_tokens_and_unknown_without_one(tmp_path):
    write(tmp_path, "a.md", b"one two three")

    priced = estimated(tmp_path, price_per_million=2_000_000)

    assert priced["cost"] == priced["left_cost"] == 2 * priced["tokens"] > 0
    assert (estimated(tmp_path)["cost"], estimated(tmp_path)["left_cost"]) == (None, None)


def test_files_that_would_not_be_indexed_are_named_with_their_reasons(tmp_path):
    write(tmp_path, "b.md", b"nul \0 byte")
    write(tmp_path, "a.md", b"x")
    write(tmp_path, "z.md", b"good")
    flaky = Refusing("a.md", OSError(5, "Input/output error"))

    answer = estimated(tmp_path, file_system=flaky)

    assert answer["files"] == 1
    assert [file["path"] for file in answer["skipped"]] == ["a.md", "b.md"]
    assert "NUL" in answer["skipped"][1]["reason"]


def test_a_workspace_that_is_not_there_has_no_price(tmp_path):
    with pytest.raises(WorkspaceMissing):
        estimated(tmp_path / "missing")


def names(*texts):
    return {bytes.fromhex(parsed("x.md", [text]).chunks[0].content_hash) for text in texts}


@pytest.fixture
def old():
    return HashEmbedder(16)


@pytest.fixture
def data(tmp_path, old):
    indexed(tmp_path, old)
    return tmp_path


EVERY_TEXT = [text for texts in FILES.values() for text in texts]


def test_the_index_of_the_model_is_reused_with_its_journal_and_what_it_removed(data, old):
    memory = Memory(data, old)
    memory.put("d.md", ["Cherries."])
    memory.remove("a.md")
    half = parsed("long.md", ["Melons."])
    vector = old.embed_documents([text_of(half.chunks[0])])
    memory.indexes.keep((half.chunks[0].content_hash,), vector)
    memory.kill()
    in_journal = embedded_texts(data, old.info, NOW)
    memory = Memory(data, old)
    memory.save()
    memory.kill()

    assert in_journal[0] >= names("Plums.", "Grapes.", "Cherries.", "Melons.")
    assert embedded_texts(data, old.info, NOW) == (
        names(*EVERY_TEXT, "Cherries.", "Melons."),
        SNAPSHOT_NAME,
    )


def test_another_model_reuses_nothing_until_it_has_begun(data):
    new = HashEmbedder(8)
    before = embedded_texts(data, new.info, NOW)
    memory = Memory(data, new)
    memory.save()
    memory.put("a.md", FILES["a.md"])
    memory.kill()

    assert before == (set(), "")
    assert embedded_texts(data, new.info, NOW) == (names(*FILES["a.md"]), NEXT_NAME)


def test_who_switches_back_reuses_the_replaced_index(data, old):
    new = HashEmbedder(8)
    memory = Memory(data, new)
    memory.put_all()
    memory.take_over()
    memory.kill()
    now = (data / PREVIOUS_NAME).stat().st_mtime

    assert embedded_texts(data, old.info, now) == (names(*EVERY_TEXT), PREVIOUS_NAME)


def test_a_rebuild_that_was_begun_reuses_only_what_it_embedded_anew(data, old):
    memory = Memory(data, old)
    memory.indexes.begin_rebuild(NOW)
    memory.put("a.md", FILES["a.md"])
    memory.kill()

    assert embedded_texts(data, old.info, NOW) == (names(*FILES["a.md"]), NEXT_NAME)


def test_without_an_index_or_with_a_damaged_one_nothing_is_reused(data, old, tmp_path):
    (data / SNAPSHOT_NAME).write_bytes(b"not a snapshot")

    assert embedded_texts(data, old.info, NOW) == (set(), "")
    assert embedded_texts(tmp_path / "missing", old.info, NOW) == (set(), "")


def test_what_is_reused_is_not_left_to_pay_for(tmp_path, data, old):
    root = tmp_path / "ws"
    for name, content in (("a.md", "Apples."), ("z.md", "Cherries and more.")):
        write(root, name, f"# Notes\n\n{content}\n".encode())
    known = {
        bytes.fromhex(chunk.content_hash)
        for chunk in parse_file(workspace(root).read("a.md"), limits=LIMITS).chunks
    }

    answer = estimated(root, embedded=known, reused_from=SNAPSHOT_NAME)

    assert (answer["to_embed"], answer["reused"], answer["left_to_embed"]) == (2, 1, 1)
    assert 0 < answer["left_tokens"] < answer["tokens"]
    assert answer["reused_from"] == SNAPSHOT_NAME


def test_a_model_that_runs_here_is_sent_no_requests(tmp_path):
    write(tmp_path, "a.md", b"# One\n\nfirst words here\n")

    answer = estimated(tmp_path, model=replace(MODEL, provider="local"))

    assert (answer["to_embed"], answer["calls"], answer["left_calls"]) == (1, 0, 0)
    assert "request" not in estimate_markdown(answer)


def test_amid_a_rebuild_only_what_it_lacks_is_said_to_be_embedded(tmp_path):
    """Both ``memory rebuild`` and a start go on with what is in ``next``."""
    root = tmp_path / "ws"
    for name, content in (("a.md", "Apples."), ("z.md", "Cherries and more.")):
        write(root, name, f"# Notes\n\n{content}\n".encode())
    done = parse_file(workspace(root).read("a.md"), limits=LIMITS).chunks[0]

    answer = estimated(root, embedded={bytes.fromhex(done.content_hash)}, reused_from=NEXT_NAME)

    assert answer["resumed"]
    (line,) = [line for line in estimate_markdown(answer).splitlines() if "rebuild" in line]
    assert "go on, reuse 1 text of `next` and embed 1 text, " in line


def test_requests_depend_on_what_the_provider_takes(tmp_path):
    for number in range(10):
        write(tmp_path, f"{number}.md", f"# T {number}\n\nword {number}\n".encode())
    narrow = replace(MODEL, limits=RequestLimits(3, 1_000, 1))

    assert estimated(tmp_path, model=narrow)["calls"] == 4


def test_a_damaged_part_of_vectors_makes_it_no_answer(data, old):
    raw = bytearray((data / SNAPSHOT_NAME).read_bytes())
    raw[20] ^= 1
    (data / SNAPSHOT_NAME).write_bytes(raw)

    with SnapshotReader(data) as reader:
        assert reader.header.info.num_files == 3
    assert embedded_texts(data, old.info, NOW) == (set(), "")
