"""What do words, vectors and both find in the same files?"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from measuring import save

from memory.analysis import Analyzer
from memory.calibrating import calibrate_at_once
from memory.chunk_limits import chunk_limits
from memory.config import Settings
from memory.embedding_input import compose
from memory.evaluation.asking import answer_measures
from memory.evaluation.memories_table import MemoriesTable
from memory.fusion import Weights
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.messages import FileUpdate
from memory.snapshot import SnapshotFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedding_cache import EmbeddingCache

    from memory.evaluation.asking import Asked
    from memory.evaluation.report import Measures
    from memory.messages import ParsedFile
    from memory.providers.base import ModelInfo

MODES = {"text": Weights(1.0, 0.0), "vector": Weights(0.0, 1.0), "hybrid": Weights(0.5, 0.5)}
SETTINGS = Settings()
FLOOR = SETTINGS.memory.min_score_to_mention


class ModeIndexes:
    """Files that were indexed once, to be searched in every mode.

    Args:
        files: Sorted by path.
        language: Of the analysis.
        info: The model.
        cache: Its vectors.
    """

    def __init__(
        self, files: Sequence[ParsedFile], language: str, info: ModelInfo, cache: EmbeddingCache
    ) -> None:
        analyzer = Analyzer(language)
        index = _filled_index(files, analyzer, info, cache)
        self.num_chunks = index.status().num_chunks
        self.by_mode: dict[str, MemoryIndex] = {}
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "memory.msp"
            save(index, path)
            for mode, weights in MODES.items():
                with SnapshotFile(path) as snapshot:
                    self.by_mode[mode] = MemoryIndex.restore(
                        snapshot, info, analyzer, IndexSettings(weights=weights), epoch=mode
                    )
                calibrate_at_once(self.by_mode[mode].calibrate, cache.queries)
        self.tables = {mode: MemoriesTable(each, SETTINGS) for mode, each in self.by_mode.items()}

    def measures(self, asked: Sequence[Asked]) -> dict[str, list[Measures]]:
        """Returns how good the answers to questions are, by mode."""
        return {
            mode: [answer_measures(index, each) for each in asked]
            for mode, index in self.by_mode.items()
        }


def _filled_index(
    files: Sequence[ParsedFile], analyzer: Analyzer, info: ModelInfo, cache: EmbeddingCache
) -> MemoryIndex:
    """Returns an index with files, every vector taken from the cache."""
    limits = chunk_limits(None, info)
    index = MemoryIndex(info, analyzer, IndexSettings(), epoch="files")
    chunks = {chunk.content_hash: chunk for parsed in files for chunk in parsed.chunks}
    vectors = cache.documents([compose(chunk, limits) for chunk in chunks.values()])
    rows = {name: vectors[number] for number, name in enumerate(chunks)}
    for parsed in files:
        hashes = tuple(chunk.content_hash for chunk in index.plan(parsed).missing)
        block = np.stack([rows[name] for name in hashes]) if hashes else vectors[:0]
        index.apply(FileUpdate(parsed.path, parsed, hashes, block))
    return index
