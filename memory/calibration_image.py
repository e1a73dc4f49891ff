"""How does a snapshot hold what was measured for the calibration?

Three parts: ``calibration/prompts`` (vectors of the unrelated prompts, float16),
``calibration/rows`` (noise by row, float32, NaN where it was not measured) and
``calibration/threshold`` (the version of the prompts and, once measured, the threshold).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memory.calibration import Reference, Threshold
from memory.fusion import Weights
from memory.packing import pack, unpack_array
from memory.unrelated_prompts import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory.index_state import IndexState
    from memory.snapshot import SnapshotFile

_PROMPTS, _ROWS, _THRESHOLD = (f"calibration/{name}" for name in ("prompts", "rows", "threshold"))


def encode_calibration(state: IndexState) -> dict[str, bytes]:
    """Returns the parts by name; none if nothing was measured."""
    if state.noise.reference is None:
        return {}
    fields: tuple[float, ...] = ()
    if (known := state.threshold) is not None:
        fields = (known.level, known.num_chunks, known.weights.text, known.weights.vector)
    return {
        _PROMPTS: state.noise.reference.stored.astype("<f2").tobytes(),
        _ROWS: state.noise.stored().astype("<f4").tobytes(),
        _THRESHOLD: pack((VERSION, *fields)),
    }


def restore_calibration(
    snapshot: SnapshotFile, state: IndexState, rows: Sequence[int] | None
) -> None:
    """Gives an index what an earlier process measured; nothing if it used other prompts.

    Args:
        snapshot: Open; it stays so.
        state: The index, complete but for this.
        rows: What its rows 0, 1, … were when the snapshot was written; None if they kept their
            numbers.
    Raises:
        SnapshotCorrupt: a checksum is wrong, or a part is missing.
        ValueError: the parts are not what they should be; so do TypeError and
            ``msgpack.UnpackException``.
    """
    if _THRESHOLD not in {part.name for part in snapshot.header.parts}:
        return
    version, *fields = unpack_array(snapshot.view(_THRESHOLD))
    if version != VERSION:
        return
    prompts = np.frombuffer(snapshot.view(_PROMPTS), "<f2").reshape(-1, state.vectors.dim)
    noise = np.frombuffer(snapshot.view(_ROWS), "<f4")
    if rows is not None:
        noise = np.append(noise, np.full(max(rows, default=-1) + 1, np.nan, np.float32))[list(rows)]
    state.noise.restore(Reference(prompts.astype(np.float32)), noise, state.vectors.size)
    if fields:
        level, num_chunks, text, vector = fields
        if not 0 < level < 1:
            raise ValueError("a threshold outside of (0, 1)")
        state.threshold = Threshold(level, num_chunks, Weights(text, vector))
