"""Where do the sockets and the Ray session of a data folder lie?

In the folder for temporary files, because a socket's path must be short and a data folder's may be
long.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

MAX_FOLDER_BYTES = 40
"""Ray's socket paths add about 60 bytes and must stay below 107."""


def data_key(data: Path) -> str:
    """Returns the short name of a data folder, for namespaces and folder names."""
    return hashlib.sha256(os.fsencode(data.resolve())).hexdigest()[:10]


def private_folder(data: Path) -> Path:
    """Returns the folder, which may not be there; in ``/tmp`` if ``TMPDIR`` is too long."""
    name = f"memory-{os.getuid()}-{data_key(data)}"
    folder = Path(tempfile.gettempdir()) / name
    if len(os.fsencode(folder)) > MAX_FOLDER_BYTES:
        return Path("/tmp") / name  # noqa: S108 - created 0700 and its owner is checked
    return folder
