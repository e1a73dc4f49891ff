"""Every file embedded anew: the memory answers all the time, and pays for a text once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from actors import daemon, service
from actors.bulk_embedding import CONTROL_TEXT
from actors.rebuilding import begin, is_complete
from actors.system import MemorySystem
from memory.errors import DaemonError, ProviderUnavailable
from memory.index_folders import NEXT_NAME, PREVIOUS_NAME, identity_in
from memory.rebuild_progress import follow_rebuild
from memory.storage import IndexStorage
from tests.inline.conftest import FLUSH_S, INFO, Pipe, start, stop
from tests.inline.handles import InlineHandle
from tests.inline.test_service import Daemon, StillWatcher

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from memory.status_payloads import StatusPayload

pytestmark = pytest.mark.slow

NUM_FILES = 40


def fill(pipe: Pipe) -> None:
    for number in range(NUM_FILES):
        pipe.write(f"{number}.md", f"# Title {number}\n\nzebra text {number}\n")


def system_of(pipe: Pipe) -> MemorySystem:
    handles: dict[str, Any] = {
        "chunker": pipe.chunker,
        "pool": pipe.pool,
        "keeper": pipe.keeper,
        "persister": pipe.persister,
        "provider": pipe.provider,
        "emitter": pipe.emitter,
    }
    watcher: Any = InlineHandle(StillWatcher())
    return MemorySystem(watcher=watcher, workers=(), arguments=(), **handles)


@contextlib.asynccontextmanager
async def restarted(before: Pipe) -> AsyncIterator[Pipe]:
    """The same memory after a kill."""
    await stop(before)
    pipe = start(before.root, before.data, INFO, before.clock)
    try:
        yield pipe
    finally:
        await stop(pipe)


async def done(pipe: Pipe, number: int = 1) -> bool:
    return await is_complete(system_of(pipe), number, pipe.clock)


def fail_after(pipe: Pipe, number: int) -> None:
    """Lets the model answer so many requests, of at most eight texts each."""
    real, requests = pipe.worker.embed, count()

    def embed(texts: tuple[str, ...]) -> Any:
        if next(requests) >= number:
            raise ProviderUnavailable("local", "down")
        return real(texts)

    pipe.worker.embed = embed  # type: ignore[method-assign]


def fail_but_for(pipe: Pipe, *words: str) -> None:
    """Lets the model answer requests that hold one of the words; of eight files at most."""
    real = pipe.worker.embed

    def embed(texts: tuple[str, ...]) -> Any:
        if not any(word in text for text in texts for word in (*words, CONTROL_TEXT)):
            raise ProviderUnavailable("local", "down")
        return real(texts)

    pipe.worker.embed = embed  # type: ignore[method-assign]


async def test_every_text_is_embedded_once_more_while_the_old_index_answers(pipe: Pipe) -> None:
    fill(pipe)
    await pipe.settle()
    first = sorted(pipe.worker.model.texts)
    pipe.worker.model.texts.clear()
    answers = []

    async def asked() -> bool:
        answers.append(await pipe.provider.search.remote("zebra", NUM_FILES))
        return await done(pipe)

    begun = await begin(system_of(pipe), pipe.clock)
    again = await begin(system_of(pipe), pipe.clock)
    await pipe.until(asked)

    assert begun == {"begun": True, "resumed": False, "rebuild": 1}
    assert again == {"begun": False, "resumed": True, "rebuild": 1}
    assert sorted(pipe.worker.model.texts) == first
    assert {(len(answer.hits), answer.degraded) for answer in answers} == {(NUM_FILES, "")}
    assert all(hit.vector_score for answer in answers for hit in answer.hits[:1])
    assert identity_in(pipe.data).rebuild == 1
    assert not (pipe.data / NEXT_NAME).exists()
    assert not (pipe.data / PREVIOUS_NAME).exists()


async def test_kills_in_the_middle_cost_no_text_twice(pipe: Pipe) -> None:
    """The next start goes on by itself."""
    fill(pipe)
    await pipe.settle()
    await pipe.clock.advance(FLUSH_S + 1)
    fail_after(pipe, 1)
    texts = pipe.worker.model.texts
    texts.clear()
    await begin(system_of(pipe), pipe.clock)
    await pipe.until(lambda: _some_embedded(pipe))
    await pipe.settle()
    before = pipe

    for _number in range(2):
        async with restarted(before) as new:
            fail_after(new, 1)
            await new.settle()
            assert len((await new.provider.search.remote("zebra", NUM_FILES)).hits) == NUM_FILES
            texts += new.worker.model.texts
            assert not await done(new)
            before = new
    async with restarted(before) as new:
        await new.until(lambda: done(new))
        texts += new.worker.model.texts

        assert len(texts) == len(set(texts)) == NUM_FILES


async def _some_embedded(pipe: Pipe) -> bool:
    status = await pipe.keeper.status.remote()
    return status.building is not None and status.building.num_files > 0


async def test_a_keeper_that_dies_in_the_middle_goes_on_where_it_was(pipe: Pipe) -> None:
    fill(pipe)
    await pipe.settle()
    await pipe.clock.advance(FLUSH_S + 1)
    fail_after(pipe, 2)
    pipe.worker.model.texts.clear()
    await begin(system_of(pipe), pipe.clock)
    await pipe.until(lambda: _some_embedded(pipe))
    await pipe.settle()

    pipe.restart_keeper()
    del pipe.worker.embed  # type: ignore[attr-defined]
    await pipe.clock.advance(60)
    await pipe.until(lambda: done(pipe))

    texts = [text for text in pipe.worker.model.texts if text != CONTROL_TEXT]
    assert len(texts) == len(set(texts)) == NUM_FILES


async def test_edits_meanwhile_are_true_at_once_and_afterwards(pipe: Pipe) -> None:
    fill(pipe)
    await pipe.settle()
    await begin(system_of(pipe), pipe.clock)

    (pipe.root / "1.md").unlink()
    pipe.write("2.md", "# Changed\n\nyak\n")
    await pipe.touched("1.md", "2.md")
    during = await pipe.provider.search.remote("yak", 1)
    paths = await pipe.paths()
    await pipe.until(lambda: done(pipe))

    assert [hit.path for hit in during.hits] == ["2.md"]
    assert "1.md" not in paths
    assert await pipe.paths() == paths
    assert len(paths) == NUM_FILES - 1


def change_unseen(pipe: Pipe) -> None:
    """Changes files that are last in the order of paths, and tells nobody."""
    pipe.write("9.md", "# Changed\n\nyak\n")
    pipe.write("new.md", "# New\n\ngnu\n")
    (pipe.root / "8.md").unlink()


async def answers_changes(pipe: Pipe) -> bool:
    """Whether answers show the changes, by words and by vectors."""
    found = [await pipe.provider.search.remote(query, 1) for query in ("yak", "gnu")]
    hits = [answer.hits[0] for answer in found if answer.hits]
    shown = [hit.path for hit in hits if hit.vector_score > 0]
    return shown == ["9.md", "new.md"] and "8.md" not in await pipe.paths()


async def num_left(pipe: Pipe) -> int:
    status = await pipe.keeper.status.remote()
    assert status.building is not None
    return NUM_FILES - status.building.num_files


async def test_changes_that_nobody_saw_before_a_rebuild_are_answered_with_before_its_bulk(
    pipe: Pipe,
) -> None:
    fill(pipe)
    await pipe.settle()
    change_unseen(pipe)
    fail_but_for(pipe, "yak", "gnu")

    await begin(system_of(pipe), pipe.clock)
    await pipe.until(lambda: answers_changes(pipe))

    assert await num_left(pipe) > NUM_FILES // 2
    del pipe.worker.embed  # type: ignore[attr-defined]
    await pipe.until(lambda: done(pipe))
    assert pipe.differences() == []


async def test_changes_before_the_resumption_of_a_rebuild_are_answered_with_before_the_rest(
    pipe: Pipe,
) -> None:
    fill(pipe)
    await pipe.settle()
    await pipe.clock.advance(FLUSH_S + 1)
    fail_after(pipe, 1)
    await begin(system_of(pipe), pipe.clock)
    await pipe.until(lambda: _some_embedded(pipe))
    await pipe.settle()
    change_unseen(pipe)

    async with restarted(pipe) as new:
        fail_but_for(new, "yak", "gnu")
        await new.until(lambda: answers_changes(new))

        assert await num_left(new) > NUM_FILES // 2


async def test_a_disk_that_refuses_begins_nothing_and_says_why(pipe: Pipe, monkeypatch) -> None:
    fill(pipe)
    await pipe.settle()

    def refuse(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(IndexStorage, "save", refuse)
        with pytest.raises(DaemonError, match="nothing was begun: No space left on device"):
            await begin(system_of(pipe), pipe.clock)

    assert (await pipe.keeper.status.remote()).building is None


async def test_one_that_was_given_up_is_not_waited_for_in_vain(pipe: Pipe) -> None:
    fill(pipe)
    await pipe.settle()

    with pytest.raises(DaemonError, match="given up"):
        await done(pipe, 7)


@pytest.fixture
def made(pipe: Pipe, monkeypatch) -> Iterator[Callable[[], Daemon]]:
    with tempfile.TemporaryDirectory(prefix="mem-") as short:  # the socket's path must be short
        monkeypatch.setattr(service, "runtime_folder", lambda _data: Path(short))
        monkeypatch.setattr(service, "start", lambda *_: system_of(pipe))
        yield lambda: Daemon(pipe)


async def test_a_client_follows_it_over_the_socket(pipe: Pipe, made) -> None:
    fill(pipe)
    await pipe.settle()
    seen: list[StatusPayload] = []

    async with made().running():
        following = asyncio.create_task(follow_rebuild(pipe.data, pipe.clock, seen.append))

        async def followed() -> bool:
            return following.done()

        await pipe.until(followed)
        answer = following.result()

    assert answer == {
        "begun": True,
        "resumed": False,
        "files": NUM_FILES,
        "chunks": NUM_FILES,
        "embedded_inputs": NUM_FILES,
        "tokens": answer["tokens"],
        "failed": [],
    }
    assert answer["tokens"] > 0
    assert seen
    assert all(status["building"] for status in seen)


async def test_a_daemon_for_a_rebuild_alone_ends_with_its_figures(pipe: Pipe, made) -> None:
    fill(pipe)
    await pipe.settle()
    running = made()
    task = asyncio.create_task(running.service.run(rebuilds=True))

    async def ended() -> bool:
        return task.done()

    await pipe.until(ended)

    assert task.result() == 0
    assert running.service.rebuilt["embedded_inputs"] == NUM_FILES
    assert identity_in(pipe.data).rebuild == 1


async def test_a_daemon_for_a_rebuild_that_cannot_begin_ends_with_one_line(
    pipe: Pipe, made, monkeypatch
) -> None:
    fill(pipe)
    await pipe.settle()
    running = made()

    async def refuse(*_arguments: object) -> None:
        raise DaemonError("nothing was begun: disk full")

    monkeypatch.setattr(service, "begin", refuse)
    task = asyncio.create_task(running.service.run(rebuilds=True))

    async def ended() -> bool:
        return task.done()

    await pipe.until(ended)

    assert task.result() == 1
    assert running.service.rebuilt is None
    assert any("broke off: nothing was begun: disk full" in line for line in running.lines)


@pytest.mark.parametrize(("is_interrupted", "code"), [(True, 130), (False, 1)])
async def test_who_ends_it_in_the_middle_is_told_how_it_goes_on(
    pipe: Pipe, made, is_interrupted: bool, code: int
) -> None:
    fill(pipe)
    await pipe.settle()
    pipe.worker.error = ProviderUnavailable("local", "down")
    running = made()
    task = asyncio.create_task(running.service.run(rebuilds=True))

    async def begun() -> bool:
        return (await pipe.keeper.status.remote()).building is not None

    await pipe.until(begun)
    if is_interrupted:
        os.kill(os.getpid(), signal.SIGINT)
    else:
        await running.service._stop({})

    async def ended() -> bool:
        return task.done()

    await pipe.until(ended)

    assert task.result() == code
    assert "not complete yet; `memory rebuild` or `memory start`" in running.lines[-1]


@pytest.mark.parametrize(("failed", "code"), [([], 0), (["a.md"], 1)])
def test_the_process_prints_the_figures_when_it_was_asked_to(
    tmp_path, monkeypatch, capsys, failed, code
) -> None:
    figures = {
        "begun": True,
        "resumed": False,
        "files": 1,
        "chunks": 2,
        "embedded_inputs": 2,
        "tokens": 9,
    }
    config = tmp_path / "config.yml"
    config.write_text("memory: {embeddings: {provider: local}}\n")
    (tmp_path / "ws").mkdir()

    def run(_settings: object, _locations: object, *, report: Callable[[Any], int]) -> int:
        return report({**figures, "failed": failed})

    monkeypatch.setattr(service, "run", run)
    monkeypatch.setattr(os, "umask", lambda _mask: 0)
    flags = ["--config", str(config), "--workspace", str(tmp_path / "ws")]
    flags += ["--data", str(tmp_path / "data"), "--rebuild"]

    assert daemon.main([*flags, "--json"]) == code
    assert json.loads(capsys.readouterr().out) == {**figures, "failed": failed}
    assert daemon.main(flags) == code
    captured = capsys.readouterr()
    assert captured.out == "memory: rebuilt: 1 file / 2 chunks, 2 texts embedded, 9 tokens\n"
    assert ("a.md was left behind" in captured.err) == bool(failed)
