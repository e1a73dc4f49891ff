"""Was the index built with the model that is configured now?"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from memory.atomic_file import open_at_once, replace_atomically
from memory.embedding_input import INPUT_FORMAT_VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from memory.atomic_file import Disk
    from memory.providers.base import ModelInfo

EMBEDDING_JSON = "embedding.json"
_MAX_JSON_BYTES = 64 * 1024
_DIMENSIONS = ("dim", "dimension")
_LABELS = {
    "provider": "provider",
    "model": "model",
    "dim": "dimension",
    "dimension": "dimension",
    "base_url": "base URL",
    "input_format": "input format",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """What decides whether two vectors may be compared (SPEC E5)."""

    provider: str
    model: str
    dim: int
    """Dimension of the vectors; 0 while only a call could tell."""
    base_url: str
    input_format: int
    """Version of how a chunk becomes the text that is embedded; above the lowest byte, the checksum
    of what the model is told before a document, 0 for nothing."""
    rebuild: int = 0
    """How often every file was embedded anew although nothing of this had changed. Tells the later
    of two indexes; their vectors may be compared all the same."""

    @classmethod
    def of(cls, info: ModelInfo) -> Identity:
        """Returns the identity of vectors that this model would make now."""
        prefix = zlib.crc32(info.document_prefix.encode())
        input_format = INPUT_FORMAT_VERSION | prefix << 8
        return cls(info.provider, info.model, info.dim, info.base_url, input_format)

    def model_of_words(self) -> ModelInfo:
        """Returns what an index of this identity needs of its model while nobody can ask it."""
        from memory.providers.base import ModelInfo  # noqa: PLC0415 - listings need no numpy

        return ModelInfo(
            provider=self.provider,
            model=self.model,
            dim=self.dim,
            max_tokens=0,
            noise=0.0,
            similarity_floor=0.0,
            base_url=self.base_url,
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """What ``embedding.json`` says: a copy for people, the snapshot's header is the truth."""

    provider: str
    model: str
    dimension: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with the index on disk."""

    load: bool
    """The vectors on disk can be used, provided that a probe confirms their dimension."""
    probe: bool
    """One trial call is needed to learn the dimension."""
    reason: str
    """Why something has to be done, one line for the log; empty if nothing has."""


def decide(recorded: Recorded | None, header: Identity | None, configured: Identity) -> Decision:
    """Returns whether to load the index and whether to probe the model.

    The header wins over ``embedding.json``. After a probe, ask again with the dimension found.

    Args:
        recorded: From ``embedding.json``; None if it is missing or cannot be read.
        header: From the snapshot; None if that is missing or cannot be read.
        configured: ``Identity.of`` the configured model.
    """
    known = recorded is not None and differences(recorded, _as_recorded(configured)) == ""
    if header is None:
        reason = "there is no saved index; every file is embedded"
        return Decision(load=False, probe=not known, reason=reason)
    changed = differences(header, configured)
    if changed:
        return Decision(load=False, probe=not known, reason=f"{changed}; every file is embedded")
    if recorded is None:
        reason = "embedding.json is missing; one trial call checks the dimension"
        return Decision(load=True, probe=True, reason=reason)
    stale = differences(recorded, _as_recorded(header))
    if stale:
        return Decision(load=True, probe=False, reason=f"embedding.json is out of date: {stale}")
    return Decision(load=True, probe=False, reason="")


def write_embedding_json(folder: Path, identity: Identity, *, disk: Disk | None = None) -> None:
    """Replaces ``embedding.json``.

    Raises:
        OSError: the disk refused.
    """
    text = json.dumps(asdict(_as_recorded(identity)), indent=2, ensure_ascii=False)
    data = f"{text}\n".encode("utf-8", "surrogatepass")
    replace_atomically(folder / EMBEDDING_JSON, (data,), disk)


def journal_identity(identity: Identity) -> bytes:
    """Returns 32 bytes that tell the journals of different models apart.

    Without the dimension, which the first vectors may have to tell.
    """
    fields: tuple[object, ...] = (
        identity.provider,
        identity.model,
        identity.base_url,
        identity.input_format,
    )
    if identity.rebuild:
        fields += (identity.rebuild,)
    return hashlib.sha256(json.dumps(fields).encode()).digest()


def needs_writing(folder: Path, identity: Identity) -> bool:
    """Tells whether ``embedding.json`` is missing, unreadable or says another thing.

    Args:
        folder: Data folder.
        identity: Of the snapshot beside it; with an unknown dimension there is nothing to write.
    """
    return identity.dim != 0 and read_embedding_json(folder) != _as_recorded(identity)


def read_embedding_json(folder: Path) -> Recorded | None:
    """Returns the content of ``embedding.json``; None if it is missing or not such a file."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        with open(folder / EMBEDDING_JSON, "rb", opener=open_at_once) as file:
            raw = json.loads(file.read(_MAX_JSON_BYTES))
        match raw:
            case {"provider": str(provider), "model": str(model), "dimension": int(dimension)}:
                return Recorded(provider, model, dimension)
    return None


def _as_recorded(identity: Identity) -> Recorded:
    return Recorded(identity.provider, identity.model, identity.dim)


def differences(before: Identity | Recorded, after: Identity | Recorded) -> str:
    """Returns ``model changed from a to b, …`` for two values of one class, empty if equal.

    An unknown dimension (0) equals any, and it does not matter which index is the later one.
    """
    old, new = asdict(before), asdict(after)
    return ", ".join(
        f"{label} changed from {old[name] or 'none'} to {new[name] or 'none'}"
        for name, label in _LABELS.items()
        if name in old
        and old[name] != new[name]
        and not (name in _DIMENSIONS and 0 in (old[name], new[name]))
    )


def replaces(later: Identity, earlier: Identity) -> bool:
    """Tells whether an index is to take the place of another one, by their identities."""
    return bool(differences(earlier, later)) or later.rebuild > earlier.rebuild
