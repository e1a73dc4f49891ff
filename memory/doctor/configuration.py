"""Can the configuration be read, and does it say how to embed?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.config import load
from memory.doctor.finding import note, ok, problem
from memory.embedding_config import configured_model, disabled_reason
from memory.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from memory.config import Settings
    from memory.doctor.finding import Finding

NAME = "configuration"
_MODEL = "embeddings"


def read_configuration(config: Path, *, is_named: bool) -> tuple[Settings | None, list[Finding]]:
    """Returns the settings, None if there are none to be read, and what is to be said.

    Args:
        config: The file.
        is_named: Whether somebody named it, so that it must be there.
    """
    if not config.exists():
        detail, remedy = f"{config} is not there", "`memory start` or `memory init` writes one"
        return None, [(problem if is_named else note)(NAME, detail, remedy)]
    try:
        settings = load(config)
    except ConfigError as error:
        remedy = "edit this line; README lists the keys"
        return None, [problem(NAME, line, remedy) for line in str(error).splitlines()]
    return settings, [ok(NAME, str(config))]


def embedding_findings(settings: Settings) -> Iterator[Finding]:
    """Yields whether the model is known, and whether there is a key for it."""
    if reason := disabled_reason(settings):
        remedy = "`provider: local` needs no key, README lists the others"
        yield problem(_MODEL, reason.removeprefix("memory: "), remedy)
        return
    try:
        info, access = configured_model(settings)
    except ConfigError as error:
        yield problem(_MODEL, str(error), "set it where the daemon is started, or in the file")
        return
    key = "" if access is None else ", its key is there" if access.key else ", without a key"
    yield ok(_MODEL, f"{info.provider} / {info.model}{key}")
