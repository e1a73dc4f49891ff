"""Which token must a client of the HTTP server show?

It lies in the data folder, for its owner's eyes only: who can read the index may ask for it.
"""

from __future__ import annotations

import os
import secrets
import stat
from typing import TYPE_CHECKING

from memory.atomic_file import create_atomically
from memory.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from memory.atomic_file import Disk

TOKEN_NAME = "mcp.token"  # noqa: S105 - the name of the file
_MODE = 0o600
_NUM_BYTES = 32
_MIN_CHARACTERS = 20
_MAX_CHARACTERS = 4_096


def access_token(data: Path, *, disk: Disk | None = None) -> str:
    """Returns the token of a data folder, and makes one if there is none.

    Args:
        data: The data folder.
        disk: For tests.

    Raises:
        ConfigError: others may read the file, or it does not hold a token; says what to do.
        OSError: the file cannot be read or written.
    """
    path = data / TOKEN_NAME
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.path.lexists(path):
        token = secrets.token_urlsafe(_NUM_BYTES)
        # A kill must not leave half a token, which would be refused for ever.
        if create_atomically(path, (f"{token}\n".encode(),), disk):
            return token
    return _read(path)


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, encoding="ascii", errors="replace") as file:  # noqa: PTH123 - a descriptor
        mode = os.fstat(descriptor).st_mode
        text = file.read(_MAX_CHARACTERS + 1) if stat.S_ISREG(mode) else ""
    if stat.S_IMODE(mode) & ~_MODE:
        raise ConfigError(f"{path}: others may read this token; delete it, a new one is made")
    token = text.strip()
    is_fitting = len(token) >= _MIN_CHARACTERS and len(text) <= _MAX_CHARACTERS
    if not is_fitting or not token.isascii() or not token.isprintable():
        raise ConfigError(f"{path}: holds no token; delete it, a new one is made")
    return token
