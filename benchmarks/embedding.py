"""How many texts a second does each local model embed on one core, and how long takes a question?

Every model runs in a process of its own, so that the peak memory is that of the model::

    python benchmarks/embedding.py [--model NAME]... [--texts N] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from measuring import peak_rss_mb

from memory.providers.factory import model_info, open_embedder
from memory.providers.local import E5_SMALL, LOCAL, LOCAL_MODELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory.providers.base import Embedder

WORDS_A_TEXT = 150
NUM_QUESTIONS = 20
QUESTION = "how do I keep the harbour water clean"
WORDS = (  # noqa: SIM905 - a list would take a line for each word
    "the of and to in is was for that with on as by at from it be are this or an which not have "
    "people water harbour machine letter winter council river children teacher engine market "
    "village captain library weather question travel silver mountain history garden company "
    "number system record station paper window morning island measure language picture street "
    "carried followed opened decided written became returned considered received developed "
    "early large local open several certain public common modern foreign quiet northern"
).split()


def generated_texts(num_texts: int) -> list[str]:
    """Returns texts of 150 words, always the same ones."""
    chance = random.Random(7)
    return [" ".join(chance.choices(WORDS, k=WORDS_A_TEXT)) for _ in range(num_texts)]


def bare_loop(embedder: Embedder, texts: Sequence[str]) -> float:
    """Returns how many texts a second one thread embeds, without any pool around it."""
    begin = time.perf_counter()
    embedder.embed_documents(texts)
    return len(texts) / (time.perf_counter() - begin)


def measure(model: str, num_texts: int) -> dict[str, Any]:
    """Returns the figures of one model; the peak memory is that of this process."""
    begin = time.perf_counter()
    embedder = open_embedder(model_info(LOCAL, model))
    embedder.embed_query(QUESTION)
    ready = time.perf_counter()
    questions = [_milliseconds(embedder) for _ in range(NUM_QUESTIONS)]
    return {
        "model": model,
        "ready_s": round(ready - begin, 2),
        "texts": num_texts,
        "texts_per_s": round(bare_loop(embedder, generated_texts(num_texts)), 2),
        "query_p50_ms": round(statistics.median(questions), 1),
        "query_max_ms": round(max(questions), 1),
        "peak_rss_mb": round(peak_rss_mb()),
    }


def _milliseconds(embedder: Embedder) -> float:
    begin = time.perf_counter()
    embedder.embed_query(QUESTION)
    return 1000 * (time.perf_counter() - begin)


def _measure_apart(model: str, num_texts: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--worker", "--model", model, "--texts", str(num_texts)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    if run.returncode:
        reason = run.stderr.strip().splitlines() or ["no message"]
        return {"model": model, "error": reason[-1]}
    figures: dict[str, Any] = json.loads(run.stdout)
    return figures


def _print_table(rows: list[dict[str, Any]]) -> None:
    print(f"{'model':<40} {'ready s':>8} {'texts/s':>8} {'query ms':>9} {'max ms':>7} {'MB':>5}")
    for row in rows:
        if "error" in row:
            print(f"{row['model']:<40} {row['error']}")
            continue
        print(
            f"{row['model']:<40} {row['ready_s']:>8} {row['texts_per_s']:>8}"
            f" {row['query_p50_ms']:>9} {row['query_max_ms']:>7} {row['peak_rss_mb']:>5}"
        )


def main() -> int:
    """Prints the figures; 1 if a model could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=LOCAL_MODELS, metavar="NAME")
    parser.add_argument("--texts", type=int, help="texts per model (60; 10 for the slowest)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    models = options.model or list(LOCAL_MODELS)
    if options.worker:
        print(json.dumps(measure(models[0], options.texts)))
        return 0
    rows = [
        _measure_apart(name, options.texts or (10 if name == E5_SMALL else 60)) for name in models
    ]
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        _print_table(rows)
    return int(any("error" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
