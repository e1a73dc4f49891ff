"""Whatever process dies, the index ends equal to a fresh build (SPEC D4, D6)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import ray

from actors.embedder import Vectors
from actors.embedder_pool import EmbedderPool, PoolOptions
from memory.providers.factory import model_info
from tests.doubles import HashEmbedder

if TYPE_CHECKING:
    from tests.cluster.running import Running

pytestmark = pytest.mark.cluster

INFO = model_info("local", "all-minilm-l6-v2")
MOST_TEXTS = 6

KINDS = (
    "Watcher",
    "Chunker",
    "EmbedderPool",
    "Embedder-0",
    "IndexKeeper",
    "Persister",
    "ContextProvider",
    "EventEmitter",
)


def test_every_kind_of_actor_may_be_killed_while_files_change(running: Running) -> None:
    """FAULTS 66: edit, kill, edit again, converge; for each kind in turn."""
    for name in KINDS:
        running.write(f"wiki/before-{name}.md", f"# Before\n\nWritten before {name} died.\n")
        running.kill(name)
        running.write(f"wiki/after-{name}.md", f"# After\n\nWritten after {name} died.\n")
        (running.locations.workspace / f"wiki/before-{name}.md").rename(
            running.locations.workspace / f"wiki/moved-{name}.md"
        )
        running.wait_until_equal()

    running.kill("EmbedderPool")  # again: a second restart needs its arguments once more
    running.write("wiki/last.md", "# Last\n\nWritten at the end.\n")
    running.wait_until_equal()
    section = running.get(running.system.provider.section.remote("what was written after"))
    assert section.degraded == ""
    assert section.rows


class Ending:
    """An Embedder whose process is ended over many texts, as by a system without memory."""

    def embed(self, texts: tuple[str, ...]) -> Vectors:
        if len(texts) > MOST_TEXTS:
            os._exit(1)
        return Vectors(HashEmbedder(INFO.dim).embed_documents(texts))

    def ping(self) -> int:
        return os.getpid()


def test_an_embedder_that_ends_over_many_texts_embeds_them_in_smaller_requests(
    cluster: None,
) -> None:
    """FAULTS 73."""
    remote: Any = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=0)
    worker = remote(Ending).remote()
    pool: Any = ray.remote(num_cpus=0)(EmbedderPool).remote(INFO, PoolOptions(), worker)
    texts = tuple(f"text {number}" for number in range(10, 20))

    embedded = ray.get(pool.embed.remote(texts), timeout=60)
    status = ray.get(pool.status.remote(), timeout=20)
    for handle in (pool, worker):
        ray.kill(handle)

    assert (embedded.vectors == HashEmbedder(INFO.dim).embed_documents(texts)).all()
    assert embedded.refused == ()
    assert status.learned_limits[0] <= MOST_TEXTS
