"""Is a data folder whole if the system kills its owner at any system call, or refuses any?

A process opens a data folder, changes, syncs and saves the index, writes ``embedding.json``, a
token and an outbox. ``strace`` kills it at the first, the second, … call of each kind, or has that
call and the next one fail; then another process opens what is there::

    python benchmarks/chaos/syscalls.py [--calls NAME,…] [--errors NAME,…] [--every N]

Prints for each kind of call at how many of them the process was killed or refused, and everything
that was wrong: an index, a fact or a file that is neither the old nor the new one, or less than was
answered. Exits with 1 if anything was wrong, with 2 if ``strace`` cannot be used. Takes some
minutes; the same is done to the operations of ``atomic_file.Disk`` in the unit tests, with the
states a power loss leaves.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from memory.access_token import TOKEN_NAME, access_token
from memory.identity import Identity, read_embedding_json, write_embedding_json
from memory.outbox import OUTBOX_NAME, Outbox
from tests.unit.keeping import opened
from tests.unit.test_outbox_crashes import STEPS
from tests.unit.test_outbox_crashes import state_of as facts_of
from tests.unit.test_storage_crashes import CHANGES, EMBEDDER, HISTORY, Owner, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")

CALLS = "write,fsync,fdatasync,rename,link,unlink,ftruncate,openat"
ERRORS = "EIO,ENOSPC,EACCES"
IDENTITY = Identity.of(EMBEDDER.info)
FACTS = struct.Struct("<qq")
"""How many changes of the index, and how many steps of the outbox, were answered."""
TOKEN_BYTES = 44


class Promises:
    """What was answered, in memory that is shared with whoever looks afterwards."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)

    def promise(self, value: tuple[int, int]) -> None:
        """Notes the revision that survives a kill, and the one that survives a power loss."""
        FACTS.pack_into(self._memory, 0, value[0], self.answered[1])

    def note_fact(self, number: int) -> None:
        """Notes that so many steps of the outbox were answered."""
        FACTS.pack_into(self._memory, 0, self.answered[0], number)

    @property
    def answered(self) -> tuple[int, int]:
        """Both numbers."""
        changes, facts = FACTS.unpack_from(self._memory)
        return changes, facts


def facts() -> list[object]:
    """Returns the state of the outbox after each number of steps."""
    with tempfile.TemporaryDirectory() as folder:
        outbox = Outbox(Path(folder) / OUTBOX_NAME)
        states = [facts_of(outbox)]
        for step in STEPS:
            step(outbox)
            states.append(facts_of(outbox))
        return states


def live(folder: Path, promises: Promises) -> None:
    """Does everything once; what is refused is tried again."""
    Owner(folder, promises).live()
    again(lambda: write_embedding_json(folder, IDENTITY))
    again(lambda: access_token(folder))
    outbox = again(lambda: Outbox(folder / OUTBOX_NAME))
    for number, step in enumerate(STEPS, 1):
        again(lambda step=step: step(outbox))
        promises.note_fact(number)


def again(work: Callable[[], T]) -> T:
    """Returns what a call gives, at its third attempt at last."""
    for _attempt in range(3):
        with contextlib.suppress(OSError):
            return work()
    return work()


def complaints(folder: Path, answered: tuple[int, int], states: list[object]) -> Iterator[str]:
    """Yields what the next owner finds wrong."""
    index, storage = opened(folder, EMBEDDER)
    storage.stop_logging()
    if index.revision < answered[0]:
        yield f"revision {index.revision}, but {answered[0]} was answered"
    if state_of(index) != HISTORY[index.revision]:
        yield f"revision {index.revision} does not hold what its changes left"
    left = facts_of(Outbox(folder / OUTBOX_NAME))
    if left not in states[answered[1] : answered[1] + 2]:
        yield f"the outbox is not as after {answered[1]} steps"
    if (folder / "embedding.json").exists() and read_embedding_json(folder) is None:
        yield "embedding.json cannot be read"
    token = folder / TOKEN_NAME
    if token.exists() and token.stat().st_size != TOKEN_BYTES:
        yield "half a token"
    if strange := [each.name for each in folder.iterdir() if ".bad" in each.name]:
        yield f"set aside as unreadable: {strange}"


def one_life(folder: Path, injection: Sequence[str], promises: Promises) -> tuple[int, str]:
    """Runs a life under strace; returns its exit status and what strace says."""
    ready, go = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.read(ready, 1)
            live(folder, promises)
            status = 0
        finally:
            os._exit(status)
    command = ["strace", "-f", "-p", str(pid), *injection]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr is not None
        first = strace.stderr.readline()
        if "attached" not in first:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise OSError(errno.EPERM, first.strip() or "strace cannot attach")
        os.write(go, b"x")
        os.close(ready)
        os.close(go)
        rest = strace.stderr.read()
    return os.waitpid(pid, 0)[1], rest


def counted(calls: Sequence[str]) -> Counter[str]:
    """Returns how many calls of each kind a life makes."""
    with tempfile.TemporaryDirectory(prefix="mem-chaos-") as folder:
        status, said = one_life(Path(folder), ["-e", f"trace={','.join(calls)}"], Promises())
    if status:
        raise OSError(errno.EIO, f"an undisturbed life ended with {status}")
    return Counter(name for name in calls for line in said.splitlines() if f"{name}(" in line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", default=CALLS)
    parser.add_argument("--errors", default=ERRORS)
    parser.add_argument("--every", type=int, default=1, help="only every n-th call is disturbed")
    options = parser.parse_args()
    calls = options.calls.split(",")
    states = facts()
    with tempfile.TemporaryDirectory(prefix="mem-chaos-") as warm:
        live(Path(warm), Promises())  # imports, so that lives open only files of their folder
    if shutil.which("strace") is None:
        print("strace is not installed")
        return 2
    try:
        numbers = counted(calls)
    except OSError as error:
        print(f"strace cannot be used: {error.strerror}")
        return 2
    total = Counter[str]()
    began = time.monotonic()
    faults = ["signal=KILL", *(f"error={name}" for name in filter(None, options.errors.split(",")))]
    for call in calls:
        for fault in faults:
            done = disturbed(call, fault, range(1, numbers[call] + 1, options.every), states)
            print(
                f"{call:10} {fault:12} {done['points']:4} points, {done['wrong']} wrong", flush=True
            )
            total += done
    print(f"{total['points']} points in {time.monotonic() - began:.0f} s, {total['wrong']} wrong")
    return int(total["wrong"] > 0)


def disturbed(call: str, fault: str, numbers: range, states: list[object]) -> Counter[str]:
    """Disturbs a kind of call at each of these numbers; returns what to count."""
    done = Counter({"points": 0, "wrong": 0})
    for number in numbers:
        when = f"{number}" if fault.startswith("signal") else f"{number}..{number + 1}"
        injection = ["-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={when}"]
        promises = Promises()
        with tempfile.TemporaryDirectory(prefix="mem-chaos-") as folder:
            status, said = one_life(Path(folder), injection, promises)
            wrong = list(complaints(Path(folder), promises.answered, states))
        if fault.startswith("error") and (
            status or promises.answered != (len(CHANGES), len(STEPS))
        ):
            wrong.append(f"the process ended with {status} after {promises.answered}")
        for complaint in wrong:
            print(f"{call} {fault} {number}: {complaint}", file=sys.stderr)
        done["points"] += ("KILL" in fault and status == signal.SIGKILL) or "INJECTED" in said
        done["wrong"] += bool(wrong)
    return done


if __name__ == "__main__":
    sys.exit(main())
