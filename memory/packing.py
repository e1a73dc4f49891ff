"""How are values packed as bytes, and unpacked without trusting the bytes?

Each value is packed on its own. No array is longer than ``_MAX_ARRAY``, so a forged length cannot
claim memory that the bytes do not have (FAULTS 10).
"""

from __future__ import annotations

import io
import sys
from array import array
from typing import TYPE_CHECKING, Any

import msgpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Buffer

_MAX_ARRAY = 16
# Texts are clean when they get here; should one not be, a snapshot is no place to crash.
_UNICODE_ERRORS = "surrogatepass"
_BINARY_HEADS = {0xC4: 2, 0xC5: 3, 0xC6: 5}
"""First byte of a packed ``bytes`` to the length of what stands before the content."""
_READ_BYTES = 1 << 18


def pack(value: object) -> bytes:
    """Returns a value of strings, numbers, bytes and short arrays as bytes."""
    packed: bytes = msgpack.packb(value, unicode_errors=_UNICODE_ERRORS)
    return packed


def unpack_array(packed: Buffer) -> list[Any]:
    """Returns the values of one array that ``pack`` was given.

    Raises:
        ValueError: not such an array; the classes of msgpack derive from it.
    """
    values: list[Any] = msgpack.unpackb(
        packed, unicode_errors=_UNICODE_ERRORS, max_array_len=_MAX_ARRAY, max_map_len=0
    )
    return values


def encode_stream(values: Iterable[Any]) -> bytes:
    """Returns the values one after another, each packed on its own."""
    return b"".join(map(pack, values))


def decode_stream(data: bytes) -> Iterator[Any]:
    """Yields the values of ``encode_stream``.

    Raises:
        ValueError: not such a stream; the classes of msgpack derive from it.
    """
    unpacker = _unpacker(io.BytesIO(data), len(data))
    end = 0
    for value in unpacker:
        end = unpacker.tell()
        yield value
    # The iteration itself ends quietly in the middle of a value.
    if end != len(data):
        raise ValueError("a record is cut off")


class RecordReader:
    """Reads arrays from a view, one value after another; what is long may stay where it is.

    All methods raise ValueError or ``msgpack.UnpackException`` where something else stands.
    """

    def __init__(self, view: memoryview) -> None:
        """Begins at the start of a view of bytes."""
        self._view = view
        self._num_given = 0
        self._unpacker = _unpacker(self, len(view), read_size=min(len(view) + 1, _READ_BYTES))

    def read(self, size: int) -> bytes:
        """Gives msgpack the next bytes."""
        start = self._num_given
        self._num_given = min(start + size, len(self._view))
        return bytes(self._view[start : self._num_given])

    @property
    def position(self) -> int:
        """Where the next value begins in the view."""
        return int(self._unpacker.tell())

    @property
    def at_end(self) -> bool:
        """Whether everything was read."""
        return self.position == len(self._view)

    def array(self, length: int) -> None:
        """Enters an array of a length."""
        if self._unpacker.read_array_header() != length:
            raise ValueError("a record of another length")

    def value(self) -> Any:
        """Returns the next value."""
        return self._unpacker.unpack()

    def view(self) -> memoryview:
        """Returns the next value, which must be bytes, as a view of them."""
        start: int = self._unpacker.tell()
        if start >= len(self._view) or self._view[start] not in _BINARY_HEADS:
            raise ValueError("no bytes where some should be")
        self._unpacker.skip()
        return self._view[start + _BINARY_HEADS[self._view[start]] : self._unpacker.tell()]


def _unpacker(file: Any, num_bytes: int, **sizes: int) -> msgpack.Unpacker:
    return msgpack.Unpacker(
        file,
        unicode_errors=_UNICODE_ERRORS,
        max_buffer_size=num_bytes + 1,
        max_str_len=num_bytes,
        max_bin_len=num_bytes,
        max_array_len=_MAX_ARRAY,
        max_map_len=0,
        max_ext_len=0,
        **sizes,
    )


def little_endian(numbers: array[int]) -> bytes:
    """Returns the bytes of an array of uint32."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def numbers_of(data: bytes) -> list[int]:
    """Returns what ``little_endian`` made bytes of.

    Raises:
        ValueError: not such bytes.
    """
    numbers = array("I")
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
