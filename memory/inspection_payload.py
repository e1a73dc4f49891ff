"""How does an inspection travel over the socket of the daemon?"""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from memory.errors import DaemonError
from memory.identity import Identity
from memory.inspection import Difference, FileRecord, Inspection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memory.config import MemorySettings


class InspectPayload(TypedDict):
    """Answer to ``inspect``; for this version of the command line alone."""

    identity: dict[str, Any]
    files: int
    chunks: int
    records: list[list[str | int]]
    """Fields of each FileRecord."""
    faults: list[list[str]]
    value_type: str
    hashes: str
    """Base64."""
    vectors: str | None
    """Base64 of float32, little-endian."""
    is_building: bool
    """Whether an index of another model is to take over."""
    workspace: str
    exclude_globs: list[str]
    max_file_bytes: int
    max_chunk_tokens: int | None
    reconcile_interval: float


@dataclass(frozen=True, slots=True)
class Rules:
    """With which settings a daemon reads files."""

    workspace: str
    exclude_globs: tuple[str, ...]
    max_file_bytes: int
    max_chunk_tokens: int | None
    reconcile_interval: float
    """Seconds."""


def inspect_payload(
    found: Inspection, settings: MemorySettings, *, workspace: str, is_building: bool
) -> InspectPayload:
    """Returns an inspection as JSON, with the settings of the daemon."""
    vectors = None
    if found.vectors is not None:
        vectors = _base64(found.vectors.astype("<f4").tobytes())
    return {
        "identity": asdict(found.identity),
        "files": found.num_files,
        "chunks": found.num_chunks,
        "records": [list(record) for record in found.records],
        "faults": [list(fault) for fault in found.faults],
        "value_type": found.value_type,
        "hashes": _base64(b"".join(found.hashes)),
        "vectors": vectors,
        "is_building": is_building,
        "workspace": workspace,
        "exclude_globs": list(settings.exclude_globs),
        "max_file_bytes": settings.max_file_bytes,
        "max_chunk_tokens": settings.max_chunk_tokens,
        "reconcile_interval": settings.reconcile_interval,
    }


def decode_inspection(answer: Mapping[str, Any]) -> Inspection:
    """Returns the inspection in an answer.

    Raises:
        DaemonError: it is not understood; the daemon is of another version.
    """
    try:
        joined = base64.b64decode(answer["hashes"])
        hashes = tuple(joined[start : start + 32] for start in range(0, len(joined), 32))
        vectors = None
        if answer["vectors"] is not None:
            values = np.frombuffer(base64.b64decode(answer["vectors"]), "<f4")
            vectors = values.reshape(len(hashes), -1) if hashes else values.reshape(0, 0)
        return Inspection(
            identity=Identity(**answer["identity"]),
            num_files=int(answer["files"]),
            num_chunks=int(answer["chunks"]),
            records=tuple(FileRecord(*record) for record in answer["records"]),
            faults=tuple(Difference(*fault) for fault in answer["faults"]),
            value_type=str(answer["value_type"]),
            hashes=hashes,
            vectors=vectors,
        )
    except (KeyError, TypeError, ValueError):
        raise _not_understood() from None


def decode_rules(answer: Mapping[str, Any]) -> Rules:
    """Returns the settings in an answer; raises as above."""
    try:
        return Rules(
            str(answer["workspace"]),
            tuple(map(str, answer["exclude_globs"])),
            int(answer["max_file_bytes"]),
            answer["max_chunk_tokens"],
            float(answer["reconcile_interval"]),
        )
    except (KeyError, TypeError, ValueError):
        raise _not_understood() from None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _not_understood() -> DaemonError:
    return DaemonError(
        "the daemon is of another version; restart it with `memory stop` and `start`"
    )
