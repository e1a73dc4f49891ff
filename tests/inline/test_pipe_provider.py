"""What becomes of files whose texts a provider refuses or does not answer?"""

import asyncio

import pytest

from actors import context_provider
from memory.errors import InputRejected, ProviderRejected, ProviderUnavailable
from memory.messages import FileEvent, Query
from tests.inline.conftest import Pipe


def _query(text: str):
    return Query(text, 5), None


async def _index_with_a_refused_section(pipe: Pipe) -> None:
    real = pipe.worker.embed

    def refusing(texts: tuple[str, ...]):
        if any("zebra" in text for text in texts):
            raise InputRejected("local", "status 400")
        return real(texts)

    pipe.worker.embed = refusing  # type: ignore[method-assign]
    pipe.write("a.md", "# A\n\nAlpha.\n\n## B\n\nA zebra.\n\n## C\n\nGamma.\n")
    pipe.write("b.md", "# Other\n\nBeta.\n")
    await pipe.settle()


async def test_one_section_that_the_provider_refuses_is_found_by_its_words(pipe: Pipe):
    """FAULTS 58: its neighbours have vectors, the file is reported, a restart changes nothing."""
    await _index_with_a_refused_section(pipe)

    status = await pipe.chunker.status.remote()
    by_words = (await pipe.keeper.search.remote(*_query("zebra"))).hits
    assert status.failed == ()
    assert [(file.path, file.reason) for file in status.skipped] == [
        (
            "a.md",
            "1 of 3 sections found by words alone, the provider refuses them: status 400",
        )
    ]
    assert [hit.snippet for hit in by_words] == ["A zebra."]
    assert await pipe.paths() == ["a.md", "b.md"]

    pipe.restart_keeper()
    vector = pipe.worker.model.embed_query(_text_of(pipe, "Gamma"))
    hits = (await pipe.keeper.search.remote(Query("nothing like it", 5), vector)).hits
    assert hits[0].snippet == "Gamma."
    assert hits[0].vector_score > 0.99
    assert all(hit.snippet != "A zebra." for hit in hits)

    pipe.write("a.md", "# A\n\nAlpha.\n\n## B\n\nA horse.\n\n## C\n\nGamma.\n")
    await pipe.touched("a.md")
    assert (await pipe.chunker.status.remote()).skipped == ()


async def test_a_refused_section_is_told_after_a_restart_of_whoever_was_told(pipe: Pipe):
    """The index knows it; only the reason is gone."""
    await _index_with_a_refused_section(pipe)
    await pipe.restart_chunker()
    await pipe.settle()
    told = (await pipe.chunker.status.remote()).skipped
    pipe.write("a.md", "# A\n\nAlpha.\n\n## B\n\nA zebra.\n")
    await pipe.touched("a.md")
    edited = (await pipe.chunker.status.remote()).skipped
    pipe.write("a.md", "# A\n\nAlpha.\n")
    await pipe.touched("a.md")

    lost = "sections found by words alone, the provider refuses them: why was not kept"
    assert [(file.path, file.reason) for file in told] == [("a.md", f"1 of 3 {lost}")]
    assert [(file.path, file.reason) for file in edited] == [("a.md", f"1 of 2 {lost}")]
    assert (await pipe.chunker.status.remote()).skipped == ()


@pytest.mark.slow
async def test_edits_during_an_outage_are_all_there_afterwards(pipe: Pipe, caplog):
    """FAULTS 54: old text answers meanwhile, memory is bounded, and the log is short."""
    pipe.write("note-0.md", "# Note\n\nThe old text.\n")
    await pipe.settle()
    pipe.worker.error = ProviderUnavailable("local", "status 503")
    for edit in range(12):
        pipe.write(f"note-{edit % 4}.md", f"# Note\n\nEdited as edit{edit}.\n")
        await pipe.chunker.notice.remote((FileEvent(f"note-{edit % 4}.md"),), False)
        await pipe.clock.advance(1)
    failed = (await pipe.chunker.status.remote()).failed
    old = (await pipe.keeper.search.remote(*_query("old text"))).hits
    said = [record.getMessage() for record in caplog.records]

    assert {file.reason.removeprefix("waiting for ") for file in failed} == {"local: status 503"}
    assert [hit.snippet for hit in old] == ["The old text."]
    assert (await pipe.pool.status.remote()).num_waiting <= 8
    assert sum("search goes on without vectors" in line for line in said) == 1
    # None if a request of somebody else met the outage first.
    assert sum("failed: local" in line for line in said) <= 1

    pipe.worker.error = None
    await pipe.clock.advance(120)

    async def all_there() -> bool:
        return len(await pipe.paths()) == 4 and not (await pipe.chunker.status.remote()).failed

    await pipe.until(all_there)
    for number in range(4):
        (hit, *_) = (await pipe.keeper.search.remote(*_query(f"edit{8 + number}"))).hits
        assert hit.path == f"note-{number}.md"


async def test_a_refused_key_keeps_every_file_waiting_with_the_reason(pipe: Pipe):
    """FAULTS 52."""
    pipe.worker.error = ProviderRejected("local", "the key is refused (401)")
    for number in range(12):
        pipe.write(f"note-{number}.md", f"# Note\n\nText {number}.\n")
    await pipe.settle()

    status, pool = await pipe.chunker.status.remote(), await pipe.pool.status.remote()
    reasons = sorted(file.reason for file in status.failed)
    assert reasons[0] == "local: the key is refused (401)"
    assert set(reasons[1:]) == {"waiting for local: the key is refused (401)"}
    assert (len(status.failed), status.num_pending, status.ready) == (12, 12, False)
    assert pool.calls.num_requests == 1


def _text_of(pipe: Pipe, words: str) -> str:
    return next(text for text in pipe.worker.model.texts if words in text)


@pytest.mark.slow
async def test_files_that_wait_for_the_provider_say_so_and_are_pending_until_it_works(pipe: Pipe):
    """SPEC D5: nothing of the first batch is hidden behind ``ready``."""
    for number in range(60):
        pipe.write(f"{number}.md", f"# Title {number}\n\nText {number}.\n")
    pipe.worker.error = ProviderUnavailable("local", "connection refused")
    await pipe.settle()
    await pipe.clock.advance(300)
    await pipe.settle()

    status = await pipe.chunker.status.remote()
    reasons = {file.reason for file in status.failed}
    assert not status.ready
    assert status.num_pending == 60
    assert reasons <= {"local: connection refused", "waiting for local: connection refused"}
    assert "waiting for local: connection refused" in reasons
    assert {file.stage for file in status.failed} == {"embed"}

    pipe.worker.error = None
    await pipe.clock.advance(130)
    await pipe.settle()
    status = await pipe.chunker.status.remote()
    assert (status.ready, status.num_pending, status.failed) == (True, 0, ())


@pytest.mark.slow
async def test_a_file_whose_own_request_fails_holds_nobody_up(pipe: Pipe):
    """SPEC D5: a permanently failing file does not keep the memory from being ready."""
    for number in range(20):
        pipe.write(f"{number}.md", f"# Title {number}\n\nText {number}.\n")
    pipe.write("odd.md", "# Odd\n\nOdd text.\n")
    real = pipe.worker.embed

    def refuse(texts: tuple[str, ...]):
        if any("Odd text" in text for text in texts):
            raise ProviderUnavailable("local", "status 500")
        return real(texts)

    pipe.worker.embed = refuse  # type: ignore[method-assign]
    statuses = []
    for _second in range(600):
        await pipe.clock.advance(1)
        await pipe.settle()
        statuses.append(await pipe.chunker.status.remote())
        if len(statuses[-1].failed) == 1 and not statuses[-1].num_pending:
            break  # others share a request with it at times

    assert statuses[-1].ready
    assert [(file.path, file.reason, file.waits) for file in statuses[-1].failed] == [
        ("odd.md", "local: status 500", False)
    ]
    assert len(await pipe.paths()) == 20


async def test_a_question_whose_vector_takes_too_long_is_answered_by_words(pipe: Pipe, monkeypatch):
    """FAULTS 83."""
    pipe.write("a.md", "# A\n\nAn aardvark.\n")
    await pipe.settle()
    never = asyncio.Event()
    monkeypatch.setattr(context_provider, "EMBED_DEADLINE_S", 0.02)
    monkeypatch.setattr(pipe.worker, "embed_queries", lambda _texts: never.wait())

    found = await pipe.provider.search.remote("aardvark", 5)
    section = await pipe.provider.section.remote("where is the aardvark?")

    assert [hit.path for hit in found.hits] == ["a.md"]
    assert found.degraded == "no query embedding: the model did not answer within 0.02 s"
    assert "`a.md`" in section.text
