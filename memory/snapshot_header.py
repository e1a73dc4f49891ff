"""What does the header of ``memory.msp`` say, and how is it written and read?

::

    magic (8 bytes) · format version (uint32 LE)
    the parts, one after another
    header: a msgpack map with the identity, counters and the list of parts (length, SHA-256)
    header length (uint32 LE) · SHA-256 of the header

The header stands last because its checksums are known only then, so that a snapshot is made and
written in one pass. A forged one claims no memory: its length and those of its lists are bounded.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgpack

from memory.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT_VERSION = 3
# The first byte is no text, and the line ends show a transfer in text mode, as in PNG.
MAGIC = b"\x89MSP\r\n\x1a\n"
PREAMBLE = struct.Struct("<8sI")
"""Magic and format version, before the parts."""
FOOTER = struct.Struct("<I32s")
"""Length and SHA-256 of the header, behind it."""
MAX_HEADER_BYTES = 256 * 1024
_MAX_HEADER_ITEMS = 2_048


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """What a snapshot says about the index inside it."""

    identity: Identity
    language: str
    """Language of the analyzer that made the text part."""
    analysis_version: int
    revision: int
    """Change counter of the index, see ApplyResult.revision."""
    workspace: str
    """Root that the paths are relative to."""
    num_files: int
    num_chunks: int
    vector_type: str = "float32"
    """How the vectors are held, ``float32`` or ``float16``."""


@dataclass(frozen=True, slots=True)
class Part:
    """Where a part lies, and what it must be."""

    name: str
    offset: int
    """Bytes from the start of the file."""
    length: int
    """Bytes."""
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Header:
    """The verified header of a snapshot."""

    info: SnapshotInfo
    saved_at: float
    """Unix time, seconds."""
    parts: tuple[Part, ...]


def encode_header(
    info: SnapshotInfo, saved_at: float, parts: Sequence[tuple[str, int, bytes]]
) -> bytes:
    """Returns what stands behind the parts.

    Args:
        info: About the index.
        saved_at: Unix time, seconds.
        parts: Name, length and SHA-256 of each.

    Raises:
        ValueError: it would be too long to be read again.
    """
    fields = {"saved_at": float(saved_at), "info": asdict(info), "parts": parts}
    header: bytes = msgpack.packb(fields, unicode_errors="surrogatepass")
    if len(header) > MAX_HEADER_BYTES:
        raise ValueError(f"a header of {len(header)} bytes could not be read again")
    digest = hashlib.sha256(header).digest()
    return header + FOOTER.pack(len(header), digest)


def decode_header(data: bytes) -> Header:
    """Returns a header whose checksum was right.

    Args:
        data: The header without the footer.

    Raises:
        ValueError: a value is missing or of another type; so do TypeError, KeyError and
            ``msgpack.UnpackException``.
    """
    raw = msgpack.unpackb(
        data,
        unicode_errors="surrogatepass",
        max_array_len=_MAX_HEADER_ITEMS,
        max_map_len=_MAX_HEADER_ITEMS,
        max_ext_len=0,
    )
    info = dict(raw["info"])
    # The number of rebuilds came later than the format.
    info["identity"] = Identity(**_typed({"rebuild": 0, **info["identity"]}, Identity))
    parts, end = [], PREAMBLE.size
    for name, length, sha256 in raw["parts"]:
        _check(isinstance(name, str) and isinstance(sha256, bytes) and _is_count(length))
        parts.append(Part(name, end, length, sha256))
        end += length
    _check(isinstance(raw["saved_at"], float))
    return Header(SnapshotInfo(**_typed(info, SnapshotInfo)), raw["saved_at"], tuple(parts))


def _typed(raw: dict[str, Any], kind: type[Identity | SnapshotInfo]) -> dict[str, Any]:
    """Returns the map if its values have the types that the dataclass declares."""
    types = {"str": lambda value: isinstance(value, str), "int": _is_count}
    for name, declared in kind.__annotations__.items():
        _check(declared not in types or types[declared](raw[name]))
    return raw


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check(condition: bool) -> None:  # noqa: FBT001 - reads like an assertion, but survives -O
    if not condition:
        raise ValueError("a value of the header has another type")
