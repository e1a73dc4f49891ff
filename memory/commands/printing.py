"""How does an answer reach the terminal, a pipe or a program?"""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING

from memory.rebuild_rendering import rebuilt_line
from memory.sanitizing import printable_block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from memory.commands import Options
    from memory.payloads import RebuildPayload

# Laying out markdown takes a second per 100,000 characters.
_MAX_STYLED_CHARACTERS = 20_000


def print_answer(options: Options, answer: object, render: Callable[[], Iterable[str]]) -> None:
    """Prints JSON if asked for, else the documents: styled on a terminal, plain elsewhere.

    Args:
        options: How the command was called.
        answer: A payload.
        render: Returns the same as markdown documents.
    """
    if options.as_json:
        # ASCII only: escape sequences in a file's text stay escaped in the terminal, too.
        json.dump(answer, sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    documents = tuple(render())
    if options.styled and sum(map(len, documents)) <= _MAX_STYLED_CHARACTERS:
        _print_styled(documents)
    else:
        sys.stdout.write("\n".join(documents))


def say(line: str) -> None:
    """Prints one line about what a command did."""
    sys.stdout.write(f"memory: {printable_block(line)}\n")


class InertFormatter(logging.Formatter):
    """Makes lines of the log that a terminal shows and does not obey."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record."""
        return printable_block(super().format(record))


def complain(message: str) -> None:
    """Prints a message, one prefixed line for each of its lines, to stderr."""
    for line in printable_block(message).splitlines():
        sys.stderr.write(f"memory: {line}\n")


def print_rebuilt(answer: RebuildPayload, *, as_json: bool) -> int:
    """Prints what a rebuild did; returns the exit code, 1 if files were left behind."""
    if as_json:
        json.dump(answer, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        say(rebuilt_line(answer))
    sys.stdout.flush()
    for path in answer["failed"]:
        complain(f"{path} was left behind and is tried again; `memory status` says why")
    return 1 if answer["failed"] else 0


def _print_styled(documents: Iterable[str]) -> None:
    from rich.console import Console  # noqa: PLC0415 - 0.1 s that only a terminal needs
    from rich.markdown import Markdown  # noqa: PLC0415 - as above

    console = Console()
    for document in documents:
        # A link's text says nothing about its target, so targets are spelled out.
        markdown = Markdown(document, hyperlinks=False)
        # Character references are decoded by now, to whatever they stand for.
        for block in markdown.parsed:
            for token in block.children or (block,):
                token.content = printable_block(token.content)
        console.print(markdown)
