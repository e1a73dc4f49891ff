"""Another model in the configuration: the memory answers all the time, and pays for a text once."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pytest

from actors.bulk_embedding import CONTROL_TEXT
from actors.succeeding import PATIENCE_S, RETRY_S
from memory.checks import dump
from memory.errors import ProviderUnavailable
from memory.identity import read_embedding_json
from memory.index_folders import NEXT_NAME, identity_in
from memory.messages import Query
from memory.providers.base import RequestLimits
from tests.doubles import HashEmbedder
from tests.inline.conftest import FLUSH_S, INFO, Pipe, gone, start, stop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from actors.former_model import Open
    from memory.config import InferenceSettings
    from memory.identity import Identity

pytestmark = pytest.mark.slow

OTHER = replace(INFO, model="other", dim=8)
NUM_FILES = 40


def fill(pipe: Pipe) -> None:
    for number in range(NUM_FILES):
        pipe.write(f"{number}.md", f"# Title {number}\n\nzebra text {number}\n")


@asynccontextmanager
async def restarted(
    before: Pipe, info=OTHER, dim: int = 0, open_former: Open = gone
) -> AsyncIterator[Pipe]:
    """The same memory after a kill, with another model in the configuration."""
    await stop(before)
    pipe = start(before.root, before.data, info, before.clock, dim, open_former)
    try:
        yield pipe
    finally:
        await stop(pipe)


async def is_building(pipe: Pipe) -> bool:
    return (await pipe.keeper.status.remote()).building is not None


async def taken_over(pipe: Pipe) -> bool:
    return not await is_building(pipe)


async def is_mirrored(pipe: Pipe) -> bool:
    return read_embedding_json(pipe.data).model == pipe.info.model


async def asks_old_model(pipe: Pipe) -> bool:
    former = pipe.provider.shell._former
    return former.identity is not None and not former.trouble and await num_done(pipe) > 0


async def is_told(pipe: Pipe) -> bool:
    return "not configured" in (await pipe.provider.status.remote()).former_trouble


async def num_done(pipe: Pipe) -> int:
    return (await pipe.keeper.status.remote()).building.num_files


def fail_after(pipe: Pipe, number: int) -> None:
    """Lets the model answer so many requests, of at most eight texts each."""
    real, requests = pipe.worker.embed, count()

    def embed(texts: tuple[str, ...]):
        if next(requests) >= number:
            raise ProviderUnavailable("local", "down")
        return real(texts)

    pipe.worker.embed = embed  # type: ignore[method-assign]


async def test_the_old_index_answers_until_the_new_one_is_complete(pipe: Pipe):
    """SPEC E5: never empty, never mixed."""
    fill(pipe)
    await pipe.settle()
    old_texts = list(pipe.worker.model.texts)
    answers = []

    async with restarted(pipe) as new:

        async def asked() -> bool:
            answers.append(await new.provider.search.remote("zebra", NUM_FILES))
            return await taken_over(new)

        await new.until(asked)
        last = await new.provider.search.remote("zebra", NUM_FILES)
        status = await new.keeper.status.remote()
        await new.until(lambda: is_mirrored(new))

        during = [answer for answer in answers if answer.degraded]
        assert during[0].degraded.startswith(f"vectors are being rebuilt (0 of {NUM_FILES} files)")
        assert {len(answer.hits) for answer in answers} == {NUM_FILES}
        assert {hit.vector_score for answer in during for hit in answer.hits} == {0.0}
        assert last.degraded == ""
        assert last.threshold is not None
        assert (status.model, status.dim) == ("other", 8)
        assert sorted(new.worker.model.texts) == sorted(old_texts)
        assert {row.shape for _, _, row in new.keeper.shell._indexes.answering.entries()} == {(8,)}
        assert identity_in(new.data).model == "other"
        assert not (new.data / NEXT_NAME).exists()


async def test_the_old_model_gives_questions_their_vectors_until_the_new_one_takes_over(
    pipe: Pipe,
):
    """SPEC E5."""
    fill(pipe)
    await pipe.settle()
    opened: list[Identity] = []
    old_model = HashEmbedder(INFO.dim)

    def open_former(identity: Identity, _inference: InferenceSettings) -> HashEmbedder:
        opened.append(identity)
        return old_model

    async with restarted(pipe, open_former=open_former) as new:
        fail_after(new, 2)
        await new.until(lambda: asks_old_model(new))
        new.worker.model.queries.clear()
        during = await new.provider.search.remote("zebra", NUM_FILES)
        text = next(text for text in pipe.worker.model.texts if text.endswith("zebra text 0"))
        nearest = (await new.provider.search.remote(text, 1)).hits[0]

        assert during.degraded == ""
        assert any(hit.vector_score for hit in during.hits)
        assert (nearest.path, nearest.vector_score) == ("0.md", pytest.approx(1, abs=0.01))
        assert new.worker.model.queries == []
        assert [(identity.model, identity.dim) for identity in opened] == [(INFO.model, INFO.dim)]

        del new.worker.embed  # type: ignore[attr-defined]
        await new.clock.advance(60)
        await new.until(lambda: taken_over(new))
        vector, num_asked = old_model.embed_query("zebra"), len(old_model.queries)
        late = await new.keeper.search_former.remote(Query("zebra", 1), vector, opened[0], "")
        after = await new.provider.search.remote("zebra", NUM_FILES)
        later = await new.provider.search.remote("zebra", NUM_FILES)

        assert late is None
        assert (after.degraded, later.degraded) == ("", "")
        assert len(old_model.queries) <= num_asked + 2
        assert new.provider.shell._former._embedder is None


async def test_an_old_model_that_cannot_be_reached_is_named(pipe: Pipe):
    fill(pipe)
    await pipe.settle()

    async with restarted(pipe) as new:
        fail_after(new, 2)
        await new.until(lambda: is_told(new))
        during = await new.provider.search.remote("zebra", NUM_FILES)

        assert "vectors are being rebuilt" in during.degraded
        assert "it is not configured any more" in during.degraded
        assert {hit.vector_score for hit in during.hits} == {0.0}
        assert (await new.provider.status.remote()).former_trouble == (
            "it is not configured any more"
        )


async def test_kills_in_the_middle_cost_no_text_twice(pipe: Pipe):
    fill(pipe)
    await pipe.settle()
    texts: list[str] = []
    before = pipe

    for _number in range(3):
        async with restarted(before) as new:
            fail_after(new, 1)
            await new.settle()
            assert await num_done(new) > len(texts)
            assert len((await new.provider.search.remote("zebra", NUM_FILES)).hits) == NUM_FILES
            texts += new.worker.model.texts
            assert await num_done(new) == len(texts)
            before = new
    async with restarted(before) as new:
        await new.until(lambda: taken_over(new))
        texts += new.worker.model.texts

        assert len(texts) == len(set(texts)) == NUM_FILES


async def test_a_keeper_that_dies_in_the_middle_goes_on_where_it_was(pipe: Pipe):
    fill(pipe)
    await pipe.settle()

    async with restarted(pipe) as new:
        fail_after(new, 2)
        await new.settle()
        embedded = len(new.worker.model.texts)
        assert 0 < embedded < NUM_FILES
        new.restart_keeper()
        assert await num_done(new) == embedded
        del new.worker.embed  # type: ignore[attr-defined]
        await new.clock.advance(60)
        await new.until(lambda: taken_over(new))

        embedded_texts = [text for text in new.worker.model.texts if text != CONTROL_TEXT]
        assert len(embedded_texts) == NUM_FILES


async def test_edits_and_removals_meanwhile_are_true_afterwards(pipe: Pipe):
    fill(pipe)
    await pipe.settle()

    (pipe.root / "0.md").unlink()  # while no daemon runs
    async with restarted(pipe) as new:
        fail_after(new, 2)
        await new.settle()
        paths = await new.paths()
        (new.root / "1.md").unlink()
        (new.root / "2.md").rename(new.root / "moved.md")
        new.write("3.md", "# Changed\n\nyak\n")
        await new.touched("1.md", "2.md", "3.md", "moved.md")
        gone = await new.paths()
        stale = (await new.keeper.search.remote(Query("text 3", 1), None)).hits
        del new.worker.embed  # type: ignore[attr-defined]
        await new.clock.advance(60)
        await new.until(lambda: taken_over(new))

        assert "0.md" not in paths
        assert not {"1.md", "2.md"} & set(gone)
        # Its stamps are those of before, which tells that the file has changed.
        assert [hit.path for hit in stale] == ["3.md"]
        assert stale[0].mtime_ns != (new.root / "3.md").stat().st_mtime_ns
        expected = [f"{number}.md" for number in range(3, NUM_FILES)]
        assert await new.paths() == sorted([*expected, "moved.md"])
        found = (await new.provider.search.remote("yak", 1)).hits
        assert [hit.path for hit in found] == ["3.md"]


async def test_an_outage_of_the_new_model_leaves_the_old_index_in_place(pipe: Pipe):
    fill(pipe)
    await pipe.settle()

    async with restarted(pipe) as new:
        new.worker.error = ProviderUnavailable("other", "down")
        await new.settle()
        await new.clock.advance(2 * PATIENCE_S)
        await new.settle()

        assert await is_building(new)
        assert len((await new.provider.search.remote("zebra", NUM_FILES)).hits) == NUM_FILES


async def test_one_failing_file_is_waited_for_and_then_left_behind(pipe: Pipe):
    fill(pipe)
    await pipe.settle()
    alone = replace(OTHER, limits=RequestLimits(max_inputs=1, max_tokens=1000, max_concurrent=1))

    async with restarted(pipe, alone) as new:
        real = new.worker.embed

        def refuse(texts: tuple[str, ...]):
            if any("zebra text 7" in text for text in texts):
                raise ProviderUnavailable("other", "odd")
            return real(texts)

        new.worker.embed = refuse  # type: ignore[method-assign]
        await new.settle()
        while await num_done(new) < NUM_FILES - 1:  # the others wait for the end of a pause
            await new.clock.advance(1)
            await new.settle()
        before = new.clock.monotonic()
        while await is_building(new) and new.clock.monotonic() < before + 4 * PATIENCE_S:
            await new.clock.advance(1)
            await new.settle()

        assert not await is_building(new)
        assert new.clock.monotonic() >= before + PATIENCE_S / 2
        assert len(await new.paths()) == NUM_FILES - 1
        # Unless it is being tried again at this moment.
        status = await new.chunker.status.remote()
        assert [file.path for file in status.failed] in (["7.md"], [])
        assert "7.md" not in await new.paths()


async def test_a_disk_that_refuses_the_take_over_is_asked_again_later(pipe: Pipe, monkeypatch):
    fill(pipe)
    await pipe.settle()

    def refuse(*_arguments):
        raise OSError(28, "No space left on device")

    async with restarted(pipe) as new:
        with monkeypatch.context() as patch:
            patch.setattr("memory.taking_over.exchange", refuse)
            await new.until(lambda: called(new, "take_over"))
            await new.clock.advance(PATIENCE_S)
            assert await is_building(new)
        await new.clock.advance(RETRY_S)
        await new.until(lambda: taken_over(new))

        assert len(new.worker.model.texts) == NUM_FILES


async def called(pipe: Pipe, name: str) -> bool:
    return name in pipe.keeper.calls


async def test_switching_back_embeds_only_what_changed(pipe: Pipe):
    fill(pipe)
    await pipe.settle()
    await pipe.clock.advance(FLUSH_S + 1)

    async with restarted(pipe) as there:
        await there.until(lambda: taken_over(there))
        there.write("3.md", "# Changed\n\nyak\n")
        await there.touched("3.md")
    async with restarted(there, INFO) as back:
        await back.until(lambda: taken_over(back))

        (text,) = back.worker.model.texts
        assert "yak" in text
        rebuilt = {path for path, *_ in dump(back.keeper.shell._indexes.answering)}
        assert rebuilt == {f"{number}.md" for number in range(NUM_FILES)}


async def test_another_dimension_under_the_same_name_is_another_index(pipe: Pipe):
    """FAULTS 59: the model does not tell it, and answers otherwise from some day on."""
    untold = replace(INFO, model="untold", dim=0)
    async with restarted(pipe, untold, dim=16) as first:
        fill(first)
        await first.settle()
        await first.clock.advance(FLUSH_S + 1)
        await first.persister.flush.remote()

    async with restarted(first, untold, dim=8) as new:
        await new.settle()
        assert not await is_building(new)
        new.write("3.md", "# Changed\n\nyak\n")
        await new.touched("3.md")
        assert await is_building(new)
        during = await new.provider.search.remote("zebra", NUM_FILES)
        await new.until(lambda: taken_over(new))

        assert len(during.hits) == NUM_FILES
        assert "vectors are being rebuilt" in during.degraded
        assert len(new.worker.model.texts) == NUM_FILES
        assert {row.shape for _, _, row in new.keeper.shell._indexes.answering.entries()} == {(8,)}
