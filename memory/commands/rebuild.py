"""``memory rebuild``: how are all vectors made anew, and what does that cost?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from memory.commands.printing import complain, print_answer, print_rebuilt
from memory.daemon_client import is_running
from memory.embedding_config import configured_model, disabled_reason
from memory.errors import WorkspaceError

if TYPE_CHECKING:
    from pathlib import Path

    from memory.commands import Options
    from memory.config import Settings
    from memory.payloads import RebuildEstimatePayload
    from memory.status_payloads import StatusPayload


def run(options: Options) -> int:
    """Has every file embedded anew, by the running daemon or by one that ends with it.

    The old index answers until the new one is complete. With ``--dry-run``, only counts.

    Raises:
        ConfigError: the configuration is wrong.
        DaemonError: the daemon ended or refused; what was embedded until then is kept.
        WorkspaceError: the workspace is not there.
    """
    if not options.dry_run and is_running(options.data):
        return _follow(options)
    settings = options.settings()
    if reason := disabled_reason(settings):
        sys.stderr.write(f"{reason}\n")
        if not options.config.exists():
            complain(f"{options.config} is not there; `memory init` writes one")
        return 1
    workspace = options.find_workspace(settings.core.workspace)
    if not workspace.is_dir():
        raise WorkspaceError(str(workspace), "no such folder; name another with --workspace")
    if options.dry_run:
        return _print_estimate(options, settings, workspace)
    from memory.commands.start import become_daemon  # noqa: PLC0415 - only without a daemon

    become_daemon(options, workspace, "--rebuild", *(["--json"] if options.as_json else []))
    return 0


class Progress:
    """One line on standard error: how far it is, on a terminal only, and each new trouble."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._trouble = ""

    def show(self, status: StatusPayload) -> None:
        """Shows a status."""
        from memory.rebuild_progress import progress_line, trouble  # noqa: PLC0415 - see _follow

        found = trouble(status)
        if found and found != self._trouble:
            self.clear()
            complain(found)
        self._trouble = found
        if self._is_terminal:
            self.clear()
            sys.stderr.write(f"memory: {progress_line(status)}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Makes room for another line."""
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")


def _follow(options: Options) -> int:
    import asyncio  # noqa: PLC0415 - 0.05 s that only this needs

    from memory.clock import SystemClock  # noqa: PLC0415 - as above
    from memory.rebuild_progress import follow_rebuild  # noqa: PLC0415 - as above

    progress = Progress()
    try:
        answer = asyncio.run(follow_rebuild(options.data, SystemClock(), progress.show))
    except KeyboardInterrupt:
        progress.clear()
        complain("the daemon goes on; `memory status` shows how far it is")
        raise
    finally:
        progress.clear()
    return print_rebuilt(answer, as_json=options.as_json)


def _print_estimate(options: Options, settings: Settings, workspace: Path) -> int:
    from memory.rebuild_rendering import estimate_markdown  # noqa: PLC0415 - only for this

    answer = _estimate(options, settings, workspace)
    print_answer(options, answer, lambda: [estimate_markdown(answer)])
    return 0


def _estimate(options: Options, settings: Settings, workspace: Path) -> RebuildEstimatePayload:
    from memory.chunk_limits import chunk_limits  # noqa: PLC0415 - loads the parser and the model's
    from memory.globs import Globs  # noqa: PLC0415 - vocabulary
    from memory.rebuild_estimate import RebuildEstimate, embedded_texts  # noqa: PLC0415 - as above
    from memory.workspace import Workspace  # noqa: PLC0415 - as above

    memory = settings.memory
    model, _access = configured_model(settings)
    embedded, reused_from = embedded_texts(options.data, model, options.now_s)
    estimate = RebuildEstimate(model, chunk_limits(memory.max_chunk_tokens, model), embedded)
    exclude = Globs(memory.exclude_globs)
    estimate.add_all(Workspace(workspace, exclude=exclude, max_file_bytes=memory.max_file_bytes))
    price = memory.embeddings.price_per_million_tokens
    return estimate.payload(reused_from=reused_from, price_per_million=price)
