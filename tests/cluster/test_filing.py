"""A fact from ``memory_save`` to the file that answers a question about it, through a real daemon.

Only the chat model is not real: ``tests/librarian.py`` decides by what its tools answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from actors.cluster import runtime_folder
from memory.config import Settings
from memory.daemon_client import request
from memory.local_access import LocalAccess
from memory.outbox import OUTBOX_NAME
from memory.tools import memory_tools
from tests.chat_server import ChatServer
from tests.cluster.test_daemon import Home
from tests.librarian import Librarian, Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

PATIENCE_S = 60.0
POLL_S = 0.1
LISBON = "wiki/places/lisbon-warehouse.md"
OSAKA = "wiki/places/osaka-office.md"
SUBJECTS = (
    Subject(
        "Lisbon",
        LISBON,
        "# Lisbon warehouse\n\nWarehouse that the company rents in Lisbon.",
        "Lease",
    ),
    Subject("Osaka", OSAKA, "# Osaka office\n\nOffice of the company in Osaka."),
    Subject("Acme", "wiki/threads/acme-rollout.md", "# Acme rollout\n\nThe rollout at Acme."),
    Subject("Bruno", "wiki/people/bruno.md", "# Bruno\n\nBruno is a bookkeeper."),
    Subject("Chiara", "wiki/people/chiara.md", "# Chiara\n\nChiara is a climber."),
    Subject("Dmitri", "wiki/people/dmitri.md", "# Dmitri\n\nDmitri is a dentist."),
)
MADRID = """\
# Madrid warehouse

Warehouse that the company rents in Madrid.

## Lease

The lease of the Madrid warehouse ends on 2029-06-30.
"""
"""Says the same in nearly the same words, of another place."""
CONFIG = """\
inference:
  customProviders:
    scripted: {{type: openai-compatible, baseUrl: "{url}/v1", apiKey: none}}
  defaultModel: scripted/librarian
memory:
  embeddings: {{provider: local, model: all-minilm-l6-v2}}
"""


@dataclass
class Filing:
    """A running daemon whose facts are filed by a scripted model."""

    home: Home
    librarian: Librarian

    def save(self, content: str) -> str:
        """Calls the tool ``memory_save``; returns the id of the event."""
        access = LocalAccess(self.home.data, Settings(), configured=self.home.workspace)
        (save,) = (tool for tool in memory_tools(access) if tool.name == "memory_save")
        answer = asyncio.run(save({"content": content}))
        assert answer.data["state"] == "queued", answer.text
        return str(answer.data["event_id"])

    def ask(self, command: str, **arguments: object) -> Any:
        return request(self.home.data, command, PATIENCE_S, **arguments)

    def result_of(self, identity: str) -> str:
        """Waits until an event is acknowledged; returns the line that says what was done."""
        results = self.until(
            lambda: {each["event_id"]: each["result"] for each in self._saves()["results"]},
            lambda found: identity in found,
        )
        return str(results[identity])

    def first_found(self, query: str, path: str, text: str = "") -> str:
        """Waits until a search finds a file first, with a text; returns the snippet."""
        hits = self.until(
            lambda: self.ask("search", query=query)["hits"],
            lambda hits: hits and hits[0]["path"] == path and text in hits[0]["snippet"],
        )
        return str(hits[0]["snippet"])

    def kill(self, name: str) -> None:
        """Ends the process of an actor as the kernel would, and waits for the next one."""
        old = self._pid(name)
        os.kill(old, signal.SIGKILL)
        self.until(lambda: self._pid(name), lambda pid: pid not in (0, old))

    def until(self, ask: Callable[[], Any], condition: Callable[[Any], object]) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not condition(answer := ask()):
            assert time.monotonic() < deadline, f"{answer}\n{self.home.printed()}"
            time.sleep(POLL_S)
        return answer

    def files(self) -> list[str]:
        """Returns the paths of all files below ``wiki/``."""
        root = self.home.workspace
        return sorted(path.relative_to(root).as_posix() for path in (root / "wiki").rglob("*.md"))

    def num_acknowledged(self, identity: str) -> int:
        """Returns how often the outbox says that an event was handled."""
        lines = (self.home.data / OUTBOX_NAME).read_text().splitlines()
        return sum(json.loads(line).get("acknowledged") == identity for line in lines)

    def _saves(self) -> Any:
        return self.ask("status")["saves"]

    def _pid(self, name: str) -> int:
        actors = self.ask("status")["actors"]
        return int(next((each["pid"] for each in actors if each["name"] == name), 0))


@pytest.fixture(scope="module")
def filing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filing]:
    home, server = Home(tmp_path_factory.mktemp("filing")), ChatServer()
    librarian = Librarian(SUBJECTS)
    server.script = librarian
    (home.folder / "config.yml").write_text(CONFIG.format(url=server.url))
    assert home.memory("init", "--workspace", str(home.workspace)).returncode == 0
    (home.workspace / "wiki/places/madrid-warehouse.md").write_text(MADRID)
    try:
        home.start()
        yield Filing(home, librarian)
    finally:
        librarian.gate.set()
        if home.daemon is not None and home.daemon.poll() is None:
            home.daemon.terminate()
            home.daemon.wait(PATIENCE_S)
        server.close()
        shutil.rmtree(runtime_folder(home.data), ignore_errors=True)


def test_a_saved_fact_answers_a_question_and_its_correction_extends_the_same_file(
    filing: Filing,
) -> None:
    question = "when does the warehouse lease in Portugal end?"
    first = filing.save(
        "The lease of the Lisbon warehouse ends on 2027-03-31; renewals go through the Globex"
        " portal."
    )
    assert filing.result_of(first) == f"created {LISBON}"
    filing.first_found(question, LISBON, "2027-03-31")
    rows = filing.home.answer("context", question)["rows"]
    assert rows[0]["path"] == LISBON, rows
    before = filing.files()

    second = filing.save(
        "Correction: the lease of the Lisbon warehouse ends on 2028-03-31, not in 2027."
    )
    assert filing.result_of(second) == f"extended {LISBON}"
    filing.first_found(question, LISBON, "2028-03-31")
    section = filing.home.answer("context", question)

    assert filing.files() == before
    assert section["rows"][0]["path"] == LISBON
    assert f"| `{LISBON}` |" in section["section"]
    text = (filing.home.workspace / LISBON).read_text()
    assert "ends on 2027-03-31; renewals go through the Globex portal." in text
    assert [filing.num_acknowledged(each) for each in (first, second)] == [1, 1]
    assert filing.home.memory("events", "--json").stdout == ""
    printed = filing.home.memory("status").stdout
    assert f"extended {LISBON}" in printed
    assert f"created {LISBON}" in printed


def test_over_mcp_a_saved_fact_is_found_by_another_wording_and_its_correction_extends_it(
    filing: Filing,
) -> None:
    """SPEC A7."""
    asyncio.run(_filed_over_mcp(filing))


async def _filed_over_mcp(filing: Filing) -> None:
    home = filing.home
    where = ["--config", str(home.folder / "config.yml"), "--data", str(home.data)]
    server = StdioServerParameters(command=sys.executable, args=["-m", "memory", "mcp", *where])
    question = "who looks after our office in Japan?"
    async with asyncio.timeout(PATIENCE_S), Client(server) as client:
        fact = "The Osaka office moved to the Umeda Sky Building; Kenji is its caretaker."
        first = await client.call_tool("memory_save", {"content": fact})
        assert first.structured_content["state"] == "queued"
        found = await _found_first(client, question, OSAKA, "Kenji")
        assert found["source"] == "daemon"
        before = filing.files()

        correction = "Correction: Mariko is the caretaker of the Osaka office now, not Kenji."
        second = await client.call_tool("memory_save", {"content": correction})
        await _found_first(client, question, OSAKA, "Mariko")

    assert filing.result_of(first.structured_content["event_id"]) == f"created {OSAKA}"
    assert filing.result_of(second.structured_content["event_id"]) == f"extended {OSAKA}"
    assert filing.files() == before


async def _found_first(client: Client, query: str, path: str, text: str) -> Any:
    """Asks until a search lists a file first, with a text in a snippet of its."""
    while True:
        found = (await client.call_tool("memory_search", {"query": query})).structured_content
        hits = found["hits"]
        if hits and hits[0]["path"] == path and text in hits[0]["snippet"]:
            return found
        await asyncio.sleep(POLL_S)


@pytest.mark.parametrize(
    ("word", "after", "path", "line"),
    [
        ("Bruno", "memory_search", "wiki/people/bruno.md", "created wiki/people/bruno.md"),
        ("Chiara", "fs_write", "wiki/people/chiara.md", "noop \u2014 already recorded"),
    ],
)
def test_a_handler_killed_in_the_middle_of_a_run_files_the_fact_once(
    filing: Filing, word: str, after: str, path: str, line: str
) -> None:
    """Before and after it wrote the file: what the first run wrote, the second one finds."""
    before = filing.files()
    filing.librarian.hold(word, after)
    identity = filing.save(f"{word} was born in Trieste on 1990-02-03.")
    assert filing.librarian.is_held.wait(PATIENCE_S)

    filing.kill("SaveHandler")
    filing.librarian.gate.set()

    assert filing.result_of(identity) == line
    assert filing.files() == sorted([*before, path])
    assert filing.num_acknowledged(identity) == 1


def test_an_emitter_killed_once_it_answered_loses_no_fact(filing: Filing) -> None:
    """One fact is being handled, the other waits."""
    before = filing.files()
    filing.librarian.hold("Acme", "")
    identities = [filing.save("The rollout at Acme starts on 2026-09-01.")]
    assert filing.librarian.is_held.wait(PATIENCE_S)
    identities.append(filing.save("Dmitri has his practice in the Via Torino."))

    filing.kill("EventEmitter")
    filing.librarian.gate.set()

    paths = ["wiki/threads/acme-rollout.md", "wiki/people/dmitri.md"]
    assert [filing.result_of(each) for each in identities] == [f"created {path}" for path in paths]
    assert filing.files() == sorted([*before, *paths])
    assert [filing.num_acknowledged(each) for each in identities] == [1, 1]
