"""How long do the properties of ``tests/fuzz`` hold when somebody tries to break them?

Runs every property for its share of the time, each in a process of its own, with bytes that atheris
chooses by the code they reach; where atheris is not installed, with random bytes::

    python benchmarks/chaos/fuzzing.py [--seconds N] [PART OF A NAME ...]

Prints for each property how many inputs it was given and how many edges of ``memory`` and
``actors`` they reached. Exits with 1 if a property broke, a process died, took more than 2 GiB or
one input took more than 20 s.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import random
import re
import resource
import subprocess
import sys
import time
from importlib.util import find_spec

MODULES = ("test_content", "test_saved", "test_requests")
_MAX_INPUT_BYTES = 4_096
_MAX_MEMORY_MB = 2_048
_GRACE_S = 120
_EXECUTED = re.compile(r"number_of_executed_units: (\d+)")
_COVERED = re.compile(r"cov: (\d+)")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--one", nargs=2, metavar=("MODULE", "PROPERTY"))
    parser.add_argument("names", nargs="*")
    given = parser.parse_args(arguments)
    if given.one:
        return _hammer(*given.one, given.seconds)
    wanted = [
        (module, name)
        for module in MODULES
        for name in _properties(module)
        if not given.names or any(part in name for part in given.names)
    ]
    return _hammer_all(wanted, given.seconds / max(1, len(wanted)))


def _properties(module: str) -> list[str]:
    found = importlib.import_module(f"tests.fuzz.{module}")
    return [name for name, test in vars(found).items() if hasattr(test, "hypothesis")]


def _hammer_all(wanted: list[tuple[str, str]], seconds: float) -> int:
    sums, broken = [0, 0], []
    for module, name in wanted:
        command = [sys.executable, __file__, "--seconds", f"{seconds:.1f}"]
        limit_s = seconds + _GRACE_S
        try:
            done = subprocess.run(
                [*command, "--one", module, name],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limit_s,
                check=False,
            )
            told, code = done.stdout + done.stderr, done.returncode
        except subprocess.TimeoutExpired as error:
            told, code = f"no end after {limit_s:.0f} s\n{error.stderr or ''}", 1
        found = [[int(number) for number in kind.findall(told)] for kind in (_EXECUTED, _COVERED)]
        numbers = [max(each, default=0) for each in found]
        sums = [total + number for total, number in zip(sums, numbers, strict=True)]
        print(f"{numbers[0]:>9,} inputs {numbers[1]:>6,} edges  {name}", flush=True)
        if code or not numbers[0]:
            broken.append(name)
            print(told[-6_000:], flush=True)
    engine = "atheris" if find_spec("atheris") else "random bytes"
    print(
        f"{sums[0]:,} inputs, {sums[1]:,} edges, {len(broken)} of {len(wanted)} broken ({engine})"
    )
    return int(bool(broken))


def _hammer(module: str, name: str, seconds: float) -> int:
    if find_spec("atheris") is None:
        return _random(module, name, seconds)
    import atheris

    with atheris.instrument_imports(include=["memory", "actors"]):
        test = getattr(importlib.import_module(f"tests.fuzz.{module}"), name)
    options = (f"-max_total_time={seconds:.0f}", f"-max_len={_MAX_INPUT_BYTES}")
    limits = (f"-rss_limit_mb={_MAX_MEMORY_MB}", "-timeout=20", "-print_final_stats=1")
    atheris.Setup(
        [name, *options, *limits, "-artifact_prefix=/dev/"], test.hypothesis.fuzz_one_input
    )
    atheris.Fuzz()
    return 0


def _random(module: str, name: str, seconds: float) -> int:
    most = _MAX_MEMORY_MB * 2**20
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    test = getattr(importlib.import_module(f"tests.fuzz.{module}"), name)
    chance, end, number = random.Random(name), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        test.hypothesis.fuzz_one_input(chance.randbytes(chance.randrange(1, _MAX_INPUT_BYTES)))
        number += 1
    print(f"stat::number_of_executed_units: {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
