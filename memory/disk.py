"""What does the index on disk answer, without a daemon?

Reads the snapshot and never writes. Each function opens it anew, so an answer is of one generation;
only ``search`` and ``context`` load the index and the model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memory import paths
from memory.context_section import NO_SECTION, section_for
from memory.errors import ConfigError, EmbeddingError, StoreError, WorkspaceError
from memory.freshness import fresh_paths
from memory.identity import Identity, differences
from memory.index_folders import NEXT_NAME
from memory.messages import Query
from memory.payloads import context_payload, list_payload, search_payload, show_payload
from memory.reader import SnapshotReader
from memory.status_payloads import blank_status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory.config import Settings
    from memory.messages import SearchResult
    from memory.payloads import ContextPayload, ListItem, SearchPayload, ShowPayload
    from memory.providers.base import ModelInfo
    from memory.status_payloads import BuildingPayload, StatusPayload


def index_age_s(data: Path, now_s: float) -> float:
    """Returns the seconds since the index was written.

    Raises:
        StoreError: there is no index, or it cannot be read; so does every function here.
    """
    with SnapshotReader(data) as reader:
        return reader.age_s(now_s)


def list_files(data: Path) -> list[ListItem]:
    """Returns every indexed file, sorted by path."""
    with SnapshotReader(data) as reader:
        return list_payload(reader.files())


def show(data: Path, path: str) -> ShowPayload:
    """Returns every chunk of one file.

    Args:
        data: Folder of the index.
        path: Relative to the workspace, in any Unicode normalisation; only looked up, never opened.

    Raises:
        WorkspaceError: the index does not hold this path.
    """
    with SnapshotReader(data) as reader:
        found = reader.chunks(paths.key(path.removeprefix("./")))
    if found is None:
        raise WorkspaceError(path, "not in the index; `memory list` names the files that are")
    return show_payload(*found)


def status(data: Path, now_s: float) -> StatusPayload:
    """Returns what the disk says about a memory whose daemon is not running."""
    answer = blank_status("stopped")
    with SnapshotReader(data) as reader:
        info, files = reader.header.info, reader.files()
        answer["files"], answer["chunks"] = len(files), sum(file.num_chunks for file in files)
        answer["generation"] = reader.revision
        answer["snapshot_age_s"] = reader.age_s(now_s)
        answer["embedding"] = {
            "provider": info.identity.provider,
            "model": info.identity.model,
            "dimension": info.identity.dim,
        }
    answer["building"] = _building(data)
    return answer


def _building(data: Path) -> BuildingPayload | None:
    """Returns what the next start goes on building, if the configuration stays as it is."""
    try:
        with SnapshotReader(data / NEXT_NAME) as reader:
            identity, files = reader.header.info.identity, reader.files()
    except (StoreError, OSError):
        return None
    return {
        "provider": identity.provider,
        "model": identity.model,
        "dimension": identity.dim,
        "files": len(files),
        "chunks": sum(file.num_chunks for file in files),
        "words_only": "",
    }


def search(
    data: Path, settings: Settings, query: Query, *, workspace: Path | None, now_s: float
) -> SearchPayload:
    """Returns the best hits; by words alone if the model fails.

    Args:
        data: Folder of the index.
        settings: How to search; API keys.
        query: Text and limit.
        workspace: Where to look whether files changed; None takes the folder that was indexed.
        now_s: Unix time, seconds.
    """
    with SnapshotReader(data) as reader:
        indexed, age_s = Path(reader.header.info.workspace), reader.age_s(now_s)
        result = _search(reader, settings, query)
    return search_payload(
        query.text,
        result,
        source="disk",
        age_s=age_s,
        fresh_paths=fresh_paths(workspace or indexed, result.hits),
    )


def context(data: Path, settings: Settings, prompt: str) -> ContextPayload:
    """Returns the ``# Memories`` section of a prompt."""
    if not prompt.strip():
        return context_payload(NO_SECTION)
    limit = settings.memory.max_system_prompt_memory_results
    query = Query(prompt, limit, wants_snippets=False, wants_distinct_files=True)
    with SnapshotReader(data) as reader:
        result = _search(reader, settings, query)
        return context_payload(section_for(result, reader.files(), settings))


def _search(reader: SnapshotReader, settings: Settings, query: Query) -> SearchResult:
    # Only the model that made the vectors can be compared with them, and only the language that
    # made the terms finds them, whatever is configured by now.
    from memory.embedding_config import model_of_index  # noqa: PLC0415 - listings need no pydantic
    from memory.prompt_parts import in_parts  # noqa: PLC0415 - as above

    info = reader.header.info
    memory = settings.memory.model_copy(update={"language": info.language})
    try:
        model = model_of_index(info.identity)
        trouble = differences(info.identity, Identity.of(model))
    except ConfigError as error:
        model, trouble = info.identity.model_of_words(), str(error)
    if trouble:
        index = reader.open_index(memory, info.identity.model_of_words())
        reason = f"no query embedding, the index is of another model: {trouble}"
        return index.search(query, None, degraded=reason)
    index = reader.open_index(memory, model)
    query = in_parts(query, memory.scoring)
    vectors, trouble = _embed(model, query, settings)
    return index.search(query, vectors, degraded=f"no query embedding: {trouble}")


def _embed(
    model: ModelInfo, query: Query, settings: Settings
) -> tuple[NDArray[np.float32] | None, str]:
    """Returns the vector of a query, or those of its parts, or why there is none."""
    from memory.embedding_config import access_to_model  # noqa: PLC0415 - as above
    from memory.providers.factory import open_embedder  # noqa: PLC0415 - as above

    if not query.text.strip():
        return None, "the query is blank"
    try:
        embedder = open_embedder(model, access_to_model(model, settings.inference))
        vectors = embedder.embed_queries(query.texts)
        return (vectors if query.parts else vectors[0]), ""
    except (ConfigError, EmbeddingError) as error:
        return None, str(error)
