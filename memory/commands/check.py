"""``memory check``: does the index hold what the files hold?"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from memory.commands.printing import complain, print_answer

if TYPE_CHECKING:
    from memory.commands import Options
    from memory.config import Settings
    from memory.index_check import Recompute
    from memory.providers.base import Embedder, ModelInfo
    from memory.recomputing import Estimate

_EXIT_DIFFERENCES = 1
_EXIT_USAGE = 2


def run(options: Options) -> int:
    """Prints every difference; 1 if there is one, 2 if texts would be paid for without ``--yes``.

    Raises:
        StoreError: there is neither a daemon nor an index.
        ConfigError: the configuration is wrong.
        EmbeddingError: the model gives no vectors.
    """
    # OpenBLAS, see ``memory.commands.asking``.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    settings = options.settings()
    from memory.check_rendering import check_markdown  # noqa: PLC0415 - as below
    from memory.checking import Patience  # noqa: PLC0415 - as below
    from memory.index_check import check  # noqa: PLC0415 - loads numpy and the parser

    try:
        answer = check(
            options.data,
            settings,
            Patience(now=time.monotonic, sleep=time.sleep),
            workspace=Path(options.workspace).absolute() if options.workspace else None,
            recompute=_recompute(options, settings) if options.rebuild_compare else None,
        )
    finally:
        _on_terminal("")
    if answer is None:
        return _EXIT_USAGE
    print_answer(options, answer, lambda: [check_markdown(answer)])
    return 0 if answer["ok"] else _EXIT_DIFFERENCES


def _recompute(options: Options, settings: Settings) -> Recompute:
    from memory.embedding_config import access_to_model  # noqa: PLC0415 - as above
    from memory.index_check import Recompute  # noqa: PLC0415 - as above
    from memory.providers.factory import open_embedder  # noqa: PLC0415 - as above

    def opened(model: ModelInfo) -> Embedder:
        return open_embedder(model, access_to_model(model, settings.inference))

    def may_send(estimate: Estimate, provider: str) -> bool:
        tokens = f"{estimate.num_texts:,} texts, about {estimate.num_tokens:,} tokens"
        if not options.yes:
            complain(f"{provider} would be paid for {tokens}; --yes agrees to it")
        else:
            sys.stderr.write(f"memory: sends {tokens} to {provider}\n")
        return options.yes

    def show(done: int, total: int) -> None:
        _on_terminal(f"memory: {done:,} of {total:,} texts are embedded again")

    return Recompute(opened, may_send, show)


def _on_terminal(line: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
