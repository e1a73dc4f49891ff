"""What is printed while the daemon runs, to whoever reads it or does not."""

from __future__ import annotations

import errno
import io
import os
import threading
from typing import TYPE_CHECKING

import pytest

from actors.console import Console
from actors.statuses import FileIndexed
from memory.status_payloads import blank_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory.status_payloads import State, StatusPayload


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    """A file on a full disk, or a terminal that was closed."""

    def write(self, _text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def status(
    state: State = "ready", *, pending: int = 0, failed: tuple[tuple[str, str], ...] = ()
) -> StatusPayload:
    payload = blank_status(state)
    payload["pending"] = pending
    payload["failed"] = [
        {
            "path": path,
            "stage": "embed",
            "reason": reason,
            "attempts": 1,
            "retry_at": 0.0,
            "waiting": False,
        }
        for path, reason in failed
    ]
    return payload


def indexed(path: str, *, removed: bool = False) -> FileIndexed:
    return FileIndexed(
        number=1,
        path=path,
        num_embedded=1,
        num_reused=2,
        num_kept=3,
        num_removed=4,
        removed=removed,
    )


@pytest.mark.parametrize(
    ("files", "chunks", "line"),
    [
        (0, 0, "memory: plugin live with 0 files / 0 chunks indexed\n"),
        (1, 1, "memory: plugin live with 1 file / 1 chunk indexed\n"),
        (2, 30, "memory: plugin live with 2 files / 30 chunks indexed\n"),
    ],
)
def test_the_live_line_knows_singular_and_plural(files: int, chunks: int, line: str):
    """SPEC D5."""
    printed = io.StringIO()

    Console(printed).live(status() | {"files": files, "chunks": chunks})

    assert printed.getvalue() == line


def test_a_changed_file_is_one_line_with_its_cost():
    printed = io.StringIO()
    console = Console(printed)

    console.indexed(indexed("wiki/a.md"))
    console.indexed(indexed("wiki/b.md", removed=True))

    assert printed.getvalue() == (
        "memory: indexed wiki/a.md (1 embedded, 2 reused, 3 kept, 4 removed)\n"
        "memory: removed wiki/b.md (4 chunks)\n"
    )


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("wiki/:smile:.md", "wiki/:smile:.md"),
        ("[bold]a[/bold].md", "[bold]a[/bold].md"),
        ("a\n\x1b[31m.md", "a [31m.md"),
        ("caf\udce9.md", "caf.md"),
        (f"{'long/' * 30}a.md", f"{'long/' * 30}a.md"),
    ],
)
def test_a_name_can_neither_move_the_cursor_nor_become_a_picture(path: str, shown: str):
    """FAULTS 84, 87."""
    printed = io.StringIO()

    Console(printed).indexed(indexed(path, removed=True))

    assert printed.getvalue() == f"memory: removed {shown} (4 chunks)\n"


def test_what_a_reason_holds_is_inert_too():
    printed = io.StringIO()

    Console(printed).say("refused: \x1b[2Jgone \u202e\udcff")

    assert printed.getvalue() == "memory: refused: [2Jgone \n"


def test_a_failing_file_is_news_once_until_it_was_repaired():
    printed = io.StringIO()
    console, failing = Console(printed), (("a.md", "local: down"),)

    console.problems(status(failed=failing))
    console.problems(status(failed=failing))
    console.problems(status(pending=1))  # it is tried again
    console.problems(status(failed=failing))
    assert printed.getvalue().count("a.md failed and is tried again: local: down") == 1

    console.problems(status())
    console.problems(status(failed=failing))
    assert printed.getvalue().count("a.md failed") == 2


def test_a_workspace_that_vanishes_and_comes_back_is_two_lines():
    printed = io.StringIO()
    console = Console(printed)

    for state in ("ready", "workspace_missing", "workspace_missing", "ready", "ready"):
        console.problems(status(state))

    assert printed.getvalue() == (
        "memory: workspace is missing; the index keeps what it has\nmemory: workspace is back\n"
    )


def test_a_disk_that_refuses_and_takes_again_is_two_lines():
    printed = io.StringIO()
    console = Console(printed)

    for error in ("", "cannot write memory.wal: full", "cannot write memory.wal: full", "", ""):
        payload = status()
        payload["disk_error"] = error
        console.problems(payload)

    assert printed.getvalue() == (
        "memory: cannot write memory.wal: full; it is tried again\n"
        "memory: the disk takes the index again\n"
    )


def test_an_index_of_another_model_that_takes_over_is_one_line():
    stream = io.StringIO()
    console = Console(stream)
    building = status("indexing")
    building["building"] = {
        "provider": "local",
        "model": "new",
        "dimension": 8,
        "files": 1,
        "chunks": 2,
        "words_only": "",
    }
    done = status()
    done["embedding"] = {"provider": "local", "model": "new", "dimension": 8}

    for each in (status(), building, building, status("starting"), done, done):
        console.problems(each)

    assert stream.getvalue() == "memory: the index of local / new is complete and answers now\n"


def test_progress_is_shown_on_a_terminal_only_and_its_thread_ends():
    """SPEC K3."""
    printed, terminal = io.StringIO(), Terminal()
    threads = set(threading.enumerate())
    for stream in (printed, terminal):
        console = Console(stream)
        for pending in (0, 10, 5, 0):
            console.progress(status("indexing", pending=pending))
        console.live(status())
        console.close()

    assert printed.getvalue() == "memory: plugin live with 0 files / 0 chunks indexed\n"
    assert "memory: indexing" in terminal.getvalue()
    assert "10/10" in terminal.getvalue()
    for thread in set(threading.enumerate()) - threads:
        thread.join(5)
        assert not thread.is_alive()


@pytest.fixture
def unread() -> Iterator[io.TextIOBase]:
    """A pipe whose reader is gone, as after ``memory start 2>&1 | head -1``."""
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w", buffering=1)
    yield stream
    with pytest.raises(BrokenPipeError):
        stream.close()


def test_a_daemon_outlives_whoever_read_its_lines(unread):
    console = Console(unread)

    for _line in range(3):
        console.say("still here")
    console.live(status())
    console.close()


def test_a_daemon_outlives_a_full_disk_below_its_log():
    console = Console(Full())

    for _line in range(3):
        console.say("still here")


def test_each_fact_is_told_once_when_something_became_of_it():
    printed = io.StringIO()
    console = Console(printed)
    saves = blank_status("ready")["saves"]
    saves["results"] = [
        {"event_id": "b", "result": "created wiki/b.md", "at": 20.0},
        {"event_id": "a", "result": "noop", "at": 11.0},
        {"event_id": "before", "result": "noop", "at": 9.0},
    ]
    failed = {"event_id": "c", "attempts": 1, "reason": "failed", "retry_at": 0.0, "parked": False}
    saves["failed"] = [failed]

    console.facts(saves, since=10.0)
    console.facts(saves, since=10.0)
    saves["failed"] = [failed | {"attempts": 5, "parked": True}]
    console.facts(saves, since=10.0)

    assert printed.getvalue().splitlines() == [
        "memory: fact a: noop",
        "memory: fact b: created wiki/b.md",
        "memory: fact c: failed; it is tried again",
        "memory: fact c: failed; it is parked",
    ]


def test_what_facts_wait_for_is_told_while_some_wait():
    printed = io.StringIO()
    console = Console(printed)
    saves = blank_status("ready")["saves"] | {"problem": "no model is configured"}

    console.facts(saves, since=0.0)
    console.facts(saves | {"queued": 1}, since=0.0)
    console.facts(saves | {"queued": 2}, since=0.0)

    assert printed.getvalue() == "memory: saved facts wait: no model is configured\n"


def test_an_outage_of_the_provider_is_two_lines_whatever_waits_for_it():
    printed = io.StringIO()
    console = Console(printed)
    away = status("indexing", pending=2, failed=(("a.md", "x"), ("b.md", "x")))
    for failed in away["failed"]:
        failed["waiting"] = True
    away["model_calls"] |= {"breaker": "open", "last_error": "openai: connection refused"}
    probing = away | {"model_calls": away["model_calls"] | {"breaker": "half-open"}}

    for each in (status(), away, probing, away, status(), status()):
        console.problems(each)

    assert printed.getvalue() == (
        "memory: openai: connection refused; pending until it works again: 2 files; search goes on"
        " without vectors\n"
        "memory: the provider of the embeddings works again\n"
    )
