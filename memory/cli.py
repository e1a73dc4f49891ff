"""What can a person do with the memory from a shell?

Each command is a module of ``memory.commands`` with ``run(options) -> exit code``, imported only
when it is asked for: the time to the first byte is mostly the time to import.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import logging
import os
import signal
import sys
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from memory import __version__
from memory.commands import Options
from memory.commands.printing import InertFormatter, complain
from memory.errors import (
    MemoryPluginError,
    SnapshotCorrupt,
    SnapshotIncompatible,
    SnapshotMissing,
)
from memory.locations import find_config, find_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HOME = "MEMORY_HOME"
_EXIT_FAILED = 1
_EXIT_INTERRUPTED = 128 + signal.SIGINT
_EXIT_BROKEN_PIPE = 128 + signal.SIGPIPE

_DESCRIPTION = "Long-term memory for an agent over a folder of markdown files."
_COMMANDS = {
    "start": "index a workspace and keep watching it, until stopped",
    "stop": "end the running daemon",
    "status": "say what the memory is doing",
    "search": "find sections by meaning and by words",
    "show": "print every indexed section of one file",
    "list": "list the indexed files",
    "context": "print the # Memories section an agent would get for a prompt",
    "eval": "measure recall with questions made from the files, or with your own",
    "check": "compare the index with the files",
    "doctor": "look for what is wrong with configuration, folders, daemon, provider and Ray",
    "events": "print the facts that wait for a handler, or acknowledge one",
    "mcp": "serve the tools of an agent over the Model Context Protocol",
    "save": "hand over a fact that is to be filed, as an agent does",
    "rebuild": "embed every file anew, or say what that would cost",
    "init": "create the configuration and the workspace, keeping what exists",
}
_PRINTS_DATA = (
    "status",
    "search",
    "show",
    "list",
    "context",
    "eval",
    "check",
    "doctor",
    "events",
    "save",
    "rebuild",
)
_LIVES_LONG = ("check", "events", "mcp", "rebuild")
_SUBJECTS = {
    "search": ("QUERY", None),
    "show": ("PATH", "path relative to the workspace"),
    "context": ("PROMPT", None),
    "save": ("TEXT", "the fact, or - for standard input"),
}
"""The argument without which a command is none."""
_SWITCHES = {
    "search": ("--explain", "show what each side contributed to a score"),
    "check": ("--rebuild-compare", "embed every file again, and compare the vectors too"),
    "doctor": ("--offline", "do not ask the embedding model for a vector"),
    "rebuild": ("--dry-run", "only say what it would cost; changes nothing"),
    "events": ("--follow", "take events as they come, until interrupted"),
    "mcp": ("--http", "listen on 127.0.0.1 instead of stdin and stdout"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; errors are lines on stderr."""
    options = _options(_parser().parse_args(argv))
    log = logging.StreamHandler()
    log.setFormatter(InertFormatter("memory: %(message)s"))
    logging.basicConfig(handlers=[log], level=logging.WARNING)
    if hasattr(sys.stdout, "reconfigure"):
        # A terminal that cannot show a character gets a question mark, not a traceback.
        sys.stdout.reconfigure(errors="replace")
    try:
        with nullcontext() if options.command in _LIVES_LONG else _no_collection():
            code = _run(options)
            sys.stdout.flush()
    except BrokenPipeError:
        return _broken_pipe()
    except (MemoryPluginError, OSError) as error:
        complain(_message(error))
        return _EXIT_FAILED
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    return code


def _run(options: Options) -> int:
    command = importlib.import_module(f"memory.commands.{options.command}")
    code: int = command.run(options)
    return code


@contextmanager
def _no_collection() -> Iterator[None]:
    """Leaves cycles alone; looking for them takes a sixth of the time of a search.

    The process ends with its one answer, and the memory of imported modules is never garbage.
    """
    gc.disable()
    try:
        yield
    finally:
        # Or the interpreter would look through everything once more when it ends.
        gc.freeze()
        gc.enable()


def _message(error: Exception) -> str:
    match error:
        case SnapshotMissing():
            return f"{error}; `memory start` makes one"
        case SnapshotCorrupt() | SnapshotIncompatible():
            return f"{error}; `memory start` sets it aside and indexes everything again"
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: {reason}"
    return str(error)


def _broken_pipe() -> int:
    # The interpreter flushes stdout once more when it ends, and would complain then.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _EXIT_BROKEN_PIPE


def _options(parsed: argparse.Namespace) -> Options:
    config = find_config(parsed.config, home=os.environ.get(_HOME))
    return Options(
        command=parsed.command,
        config=config,
        config_given=parsed.config is not None,
        data=find_data(parsed.data, config=config),
        workspace=parsed.workspace,
        as_json=getattr(parsed, "json", False),
        styled=sys.stdout.isatty() and not os.environ.get("NO_COLOR"),
        now_s=time.time(),
        subject=getattr(parsed, "subject", ""),
        limit=getattr(parsed, "limit", None),
        explain=getattr(parsed, "explain", False),
        queries=getattr(parsed, "queries", None),
        compare=getattr(parsed, "compare", None),
        action=getattr(parsed, "action", None),
        follow=getattr(parsed, "follow", False),
        visibility_s=getattr(parsed, "visibility_s", None),
        http=getattr(parsed, "http", False),
        port=getattr(parsed, "port", None),
        rebuild_compare=getattr(parsed, "rebuild_compare", False),
        yes=getattr(parsed, "yes", False),
        offline=getattr(parsed, "offline", False),
        dry_run=getattr(parsed, "dry_run", False),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memory", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"memory {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        _add_common(command, prints_data=name in _PRINTS_DATA)
        _add_own(command, name)
    return parser


def _add_common(command: argparse.ArgumentParser, *, prints_data: bool) -> None:
    command.add_argument(
        "--config", metavar="FILE", help=f"configuration (default: config.yml in ${_HOME} or here)"
    )
    command.add_argument("--workspace", metavar="DIR", help="folder of markdown files")
    command.add_argument(
        "--data", metavar="DIR", help="folder of the index (default: data/memory beside FILE)"
    )
    if prints_data:
        command.add_argument("--json", action="store_true", help="print JSON")


def _add_own(command: argparse.ArgumentParser, name: str) -> None:
    if name in _SUBJECTS:
        metavar, what = _SUBJECTS[name]
        command.add_argument("subject", metavar=metavar, help=what)
    if name in _SWITCHES:
        switch, what = _SWITCHES[name]
        command.add_argument(switch, action="store_true", help=what)
    if name == "search":
        command.add_argument("-n", dest="limit", type=_positive, metavar="N", help="most files")
    elif name == "eval":
        _add_eval(command)
    elif name == "check":
        command.add_argument(
            "--yes",
            action="store_true",
            help="with --rebuild-compare: a provider may charge for it",
        )
    elif name == "events":
        _add_events(command)
    elif name == "mcp":
        command.add_argument("--port", type=_port, metavar="N", help="with --http (default: 8377)")


def _add_eval(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--queries", metavar="FILE", help="judged questions, one JSON object a line"
    )
    command.add_argument(
        "--compare", metavar="CONFIG", help="measure this configuration too, and the differences"
    )
    command.add_argument(
        "--limit", type=_positive, metavar="N", help="most questions of a kind (default: 200)"
    )


def _add_events(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--visibility",
        dest="visibility_s",
        type=_positive,
        metavar="SECONDS",
        help="with --follow: when an event that was not acknowledged comes again (default: 300)",
    )
    actions = command.add_subparsers(dest="action", metavar="ACTION")
    # What is not given behind the action must not undo what was given before it.
    ack = actions.add_parser(
        "ack", help="end the redelivery of an event", argument_default=argparse.SUPPRESS
    )
    ack.add_argument("subject", metavar="ID")
    _add_common(ack, prints_data=True)


def _port(text: str) -> int:
    if not text.isdecimal() or not int(text) < 1 << 16:
        raise argparse.ArgumentTypeError("must be a number from 0 (any free one) to 65535")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError("must be a whole number of at least 1")
    return int(text)
