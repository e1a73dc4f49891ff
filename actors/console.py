"""What does the person in front of ``memory start`` see?

One line per event to standard error; a progress bar only on a terminal. When nobody reads any more
(a closed terminal or pipe, a full disk), the daemon goes on in silence.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TextIO, final

from rich.console import Console as RichConsole
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TimeRemainingColumn

from memory.sanitizing import printable_block, sanitize_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.statuses import FileIndexed
    from memory.status_payloads import SavesPayload, StatusPayload


@final
class _Output(RichConsole):
    """Falls silent when its reader is gone; rich would end the whole process."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class Console:
    """Prints lines, and a progress bar while the first batch is indexed."""

    def __init__(self, stream: TextIO) -> None:
        self._console = _Output(file=stream, highlight=False, soft_wrap=True, emoji=False)
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._most_pending = 0
        self._failing: set[tuple[str, str]] = set()
        self._is_missing = False
        self._disk_error = ""
        self._is_building = self._is_away = False
        self._told_facts: set[tuple[str, object]] = set()
        self._facts_wait_for = ""

    def say(self, text: str) -> None:
        """Prints one line."""
        with self._or_silence():
            self._console.print(f"memory: {printable_block(text)}", markup=False)

    def progress(self, status: StatusPayload) -> None:
        """Shows how far the first batch is; nothing unless the stream is a terminal."""
        self._most_pending = max(self._most_pending, status["pending"])
        if not self._console.is_terminal or not self._most_pending:
            return
        if self._progress is None:
            self._progress = Progress(
                "memory: indexing",
                BarColumn(),
                MofNCompleteColumn(),
                "files",
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._task = self._progress.add_task("indexing")
            with self._or_silence():
                self._progress.start()
        if self._task is not None:
            self._progress.update(
                self._task,
                total=self._most_pending,
                completed=self._most_pending - status["pending"],
            )

    def live(self, status: StatusPayload) -> None:
        """Prints the line that says how much is indexed (SPEC D5)."""
        self.close()
        files, chunks = _count(status["files"], "file"), _count(status["chunks"], "chunk")
        self.say(f"plugin live with {files} / {chunks} indexed")

    def problems(self, status: StatusPayload) -> None:
        """Prints once each: a failing file, a workspace that vanished, a disk that refuses.

        And that the index of another model has taken over.
        """
        failing = {
            (failed["path"], failed["reason"])
            for failed in status["failed"]
            if not failed["waiting"]
        }
        for path, reason in sorted(failing - self._failing):
            self.say(f"{sanitize_path(path)} failed and is tried again: {reason}")
        # A file that is tried again right now is not listed as failing, but no news either.
        self._failing = failing | self._failing if status["pending"] else failing
        is_missing = status["state"] == "workspace_missing"
        if is_missing != self._is_missing:
            news = "missing; the index keeps what it has" if is_missing else "back"
            self.say(f"workspace is {news}")
        self._is_missing = is_missing
        if status["state"] != "starting":
            self._note_building(status)
            self._note_provider(status)
        error = status["disk_error"]
        if error != self._disk_error:
            self.say(f"{error}; it is tried again" if error else "the disk takes the index again")
        self._disk_error = error

    def _note_building(self, status: StatusPayload) -> None:
        if self._is_building and status["building"] is None:
            name = "{provider} / {model}".format_map(status["embedding"])
            self.say(f"the index of {name} is complete and answers now")
        self._is_building = status["building"] is not None

    def _note_provider(self, status: StatusPayload) -> None:
        """Prints once that the provider does not work, whatever the number of files it holds up."""
        calls = status["model_calls"]
        is_away = calls["breaker"] != "closed"
        if is_away and not self._is_away:
            waiting = _count(sum(failed["waiting"] for failed in status["failed"]), "file")
            self.say(
                f"{calls['last_error']}; pending until it works again: {waiting}; search goes on"
                " without vectors"
            )
        elif self._is_away and not is_away:
            self.say("the provider of the embeddings works again")
        self._is_away = is_away

    def facts(self, saves: SavesPayload, since: float) -> None:
        """Prints once each: what became of a saved fact, why one failed, what all wait for.

        Args:
            saves: As in a status.
            since: Unix time, seconds; what became of facts before it is not told.
        """
        lines: dict[tuple[str, object], str] = {
            (result["event_id"], result["at"]): result["result"]
            for result in reversed(saves["results"])
            if result["at"] >= since
        }
        for failed in saves["failed"]:
            fate = "it is parked" if failed["parked"] else "it is tried again"
            lines[failed["event_id"], failed["attempts"]] = f"{failed['reason']}; {fate}"
        for key in [key for key in lines if key not in self._told_facts]:
            self.say(f"fact {key[0]}: {lines[key]}")
        self._told_facts = set(lines)
        problem = saves["problem"] if saves["queued"] else ""
        if problem and problem != self._facts_wait_for:
            self.say(f"saved facts wait: {problem}")
        self._facts_wait_for = problem

    def indexed(self, entry: FileIndexed) -> None:
        """Prints what a change on disk cost."""
        path = sanitize_path(entry.path)
        if entry.removed:
            self.say(f"removed {path} ({_count(entry.num_removed, 'chunk')})")
            return
        self.say(
            f"indexed {path} ({entry.num_embedded} embedded, {entry.num_reused} reused,"
            f" {entry.num_kept} kept, {entry.num_removed} removed)"
        )

    def close(self) -> None:
        """Ends the progress bar."""
        if self._progress is not None:
            with self._or_silence():
                self._progress.stop()
            self._progress = None

    @contextlib.contextmanager
    def _or_silence(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._console.quiet = True


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
