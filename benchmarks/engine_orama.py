"""How fast is Orama on the same chunks?

It runs in Node, see ``orama_peer.mjs``. Its package is installed into the scratch folder; without
Node, npm or the package there are no figures, and the reason is said.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import corpus
import engine_corpus
import numpy as np
from measuring import percentiles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine_corpus import Material
    from numpy.typing import NDArray

PACKAGE = "@orama/orama@3.1.18"
_SCRIPT = Path(__file__).with_name("orama_peer.mjs")
_INSTALL_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class OramaFigures:
    """What one run of Orama took."""

    inserts: dict[str, dict[str, float]]
    """Way of inserting (``single``, ``batches``) to number of chunks to chunks a second."""
    hybrid: dict[str, float]
    """Percentiles of hybrid searches over the most chunks, as ``measuring.percentiles`` names."""

    def inserts_a_s(self, num_chunks: int) -> float:
        """Returns the chunks a second of the better way of inserting."""
        return max(rates[str(num_chunks)] for rates in self.inserts.values())


def install(folder: Path) -> str:
    """Makes Orama available in a folder; returns why that is not possible, empty if it is."""
    missing = [program for program in ("node", "npm") if shutil.which(program) is None]
    if missing:
        return f"{' and '.join(missing)} not found"
    if (folder / "node_modules").is_dir():
        return ""
    (folder / "package.json").write_text("{}\n")
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE]
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, timeout=_INSTALL_TIMEOUT_S
        )
    except (subprocess.SubprocessError, OSError) as error:
        return f"npm could not install {PACKAGE}: {type(error).__name__}"
    return ""


def measured(folder: Path, material: Material, sizes: Iterable[int]) -> OramaFigures:
    """Returns the figures of Orama over the first chunks of a material.

    Args:
        folder: Where ``install`` put the package; files of the exchange are left there.
        material: At least as many chunks as the greatest of ``sizes``.
        sizes: Numbers of chunks to insert, ascending.
    """
    wanted = list(sizes)
    updates = material.updates()
    chunks = [
        (update.path, update.parsed.mtime_ns, chunk)
        for update in updates
        if update.parsed is not None
        for chunk in update.parsed.chunks
    ][: wanted[-1]]
    records = (
        {
            "path": path,
            "headlines": chunk.headlines,
            "context": chunk.context,
            "content": chunk.content,
            "contentHash": chunk.content_hash,
            "lastModified": mtime_ns // 1_000_000,
        }
        for path, mtime_ns, chunk in chunks
    )
    queries = material.queries()
    _write_lines(folder / "chunks.jsonl", records)
    _write_lines(folder / "queries.jsonl", queries)
    hashes = [chunk.content_hash for *_, chunk in chunks]
    _write_vectors(folder / "vectors.f32", corpus.vectors(hashes, engine_corpus.DIM))
    _write_vectors(folder / "queries.f32", engine_corpus.query_vectors(queries))
    done = subprocess.run(
        ["node", str(_SCRIPT), str(folder), *map(str, wanted)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    answer = json.loads(done.stdout)
    return OramaFigures(answer["inserts"], percentiles(answer["hybrid_ms"]))


def _write_lines(path: Path, values: Iterable[object]) -> None:
    with path.open("w") as file:
        file.writelines(json.dumps(value) + "\n" for value in values)


def _write_vectors(path: Path, block: NDArray[np.float32]) -> None:
    path.write_bytes(np.ascontiguousarray(block, "<f4").tobytes())
