"""Does any prompt take the search longer than 200 ms (FAULTS 81)?

Asks an index of N chunks everything that breaks query parsers: syntax, wildcards, control and
invisible characters, a megabyte of words, one word of 100,000 characters, only emoji, nothing::

    python benchmarks/chaos/prompts.py [--chunks N] [--repeats N] [--model]

Prints the CPU time of a prompt, from its parts to the section of the system prompt, in ms: median,
p99 and longest, and the five slowest prompts. ``--model`` adds the CPU time of the vectors of the
local model, which are waited for 1.5 s at most and are not held to the limit. Exits with 1 if a
prompt raised or took longer.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from memory.config import Settings
from memory.context_section import section_for
from memory.index_settings import IndexSettings
from memory.messages import Query
from memory.prompt_parts import in_parts
from memory.providers.factory import model_info, open_embedder
from tests.doubles import HashEmbedder
from tests.unit.building import new_index, parsed, put
from tests.unit.test_text_index import HOSTILE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory.index import MemoryIndex

SETTINGS = Settings()
LIMIT_MS = 200.0
CHUNKS_A_FILE = 10
WORDS_A_CHUNK = 120
MORE = [
    *("?" * 100_000, "*a* *e* *i*", "a\u0316\u0301" * 40_000, "\U0001f469\u200d" * 20_000),
    *("a. " * 300_000, "A sentence that says something about ships. " * 20_000, "\n" * 1_000_000),
    *("\u0e01" * 100_000, "1," * 50_000, "[[a|" * 30_000, "ship " * 10_000, "`" * 100_000),
]


def filled(num_chunks: int) -> MemoryIndex:
    chance, embedder = random.Random(1), HashEmbedder()
    words = [f"{chance.choice('bcdfgklmnprst')}{number:x}" for number in range(20_000)]
    index = new_index(embedder, IndexSettings())
    for number in range(num_chunks // CHUNKS_A_FILE):
        texts = [
            " ".join(
                words[int(chance.paretovariate(0.4)) % len(words)] for _ in range(WORDS_A_CHUNK)
            )
            for _chunk in range(CHUNKS_A_FILE)
        ]
        put(index, embedder, parsed(f"notes/{number}.md", texts))
    return index


def ask(index: MemoryIndex, prompt: str, vectors: NDArray[np.float32]) -> None:
    query = in_parts(Query(prompt, 50), "absolute")
    num_vectors = max(1, len(query.parts))
    result = index.search(query, vectors[:num_vectors])
    section_for(result, index.files(), SETTINGS)


def percentiles(times_ms: list[float]) -> str:
    median, p99, longest = np.percentile(times_ms, [50, 99, 100])
    return f"median {median:.1f}, p99 {p99:.1f}, longest {longest:.1f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=5_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--model", action="store_true")
    options = parser.parse_args()
    index, prompts, broken = filled(options.chunks), [*HOSTILE, *MORE], []
    vectors = HashEmbedder().embed_documents([str(number) for number in range(64)])
    best: dict[int, float] = {}
    every: list[float] = []
    for number, prompt in enumerate(prompts * options.repeats):
        start = time.thread_time()
        try:
            ask(index, prompt, vectors)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            broken.append(f"{prompt[:30]!r}: {error!r}")
        taken = (time.thread_time() - start) * 1000
        every.append(taken)
        which = number % len(prompts)
        best[which] = min(taken, best.get(which, taken))
    print(f"{len(prompts)} prompts, {options.chunks} chunks: {percentiles(every)} of CPU")
    for number in sorted(best, key=best.get, reverse=True)[:5]:
        print(f"  {best[number]:7.1f} ms  {prompts[number][:30]!r} ({len(prompts[number]):,})")
    if options.model:
        embedder, times = open_embedder(model_info("local", "all-minilm-l6-v2"), None), []
        for prompt in filter(str.strip, prompts):
            query = in_parts(Query(prompt, 50), "absolute")
            start = time.process_time()
            embedder.embed_queries(query.parts or (prompt,))
            times.append((time.process_time() - start) * 1000)
        print(f"their vectors, local model: {percentiles(times)} of CPU")
    print("\n".join(broken) or "no prompt raised")
    return int(bool(broken) or max(best.values()) > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
