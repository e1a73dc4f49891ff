"""What a run is told, whatever the fact is."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.agent_run.handler import Handler
from memory.agent_run.outcome import MAX_LINE_CHARACTERS, concluded
from memory.agent_run.prompts import messages
from memory.outbox import SkillEvent

NONCE = "00112233445566778899aabbccddeeff"
HANDLER = Handler("skills/memory/save.md", "File {it}.", ("fs_read", "fs_write"), "")
PIECES = ["<", "</", "data-", NONCE, NONCE[:8], ">", "\u202e", "\u200b", "\n", "\ud800", " ", "x"]
pieces = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def told(prompt: str, sources: tuple[str, ...] = (), related: tuple[str, ...] = ()) -> list[str]:
    event = SkillEvent("ab", prompt, sources, related, 1_777_777_777.0, is_related_known=True)
    return [message["content"] for message in messages(HANDLER, event, NONCE)]


@settings(deadline=None)
@given(pieces, pieces, pieces)
def test_even_who_knows_the_number_cannot_end_the_data(prompt, source, related):
    _system, user = told(prompt, (source,), (related,))

    opened = len(re.findall(rf"^<data-{NONCE}>$", user, re.MULTILINE))
    assert len(re.findall(r"(?i)<data-[0-9a-f]{8}", user)) == opened
    assert len(re.findall(r"(?i)</data-[0-9a-f]{8}", user)) == opened <= 3
    user.encode()


@settings(deadline=None)
@given(pieces)
def test_the_system_prompt_does_not_depend_on_the_fact(prompt):
    assert told(prompt, (prompt,), (prompt,))[0] == told("other")[0]


def test_the_system_prompt_names_handler_tools_day_and_delimiters():
    system, user = told("Alice moved", ("chat-1",), ("wiki/people/alice.md",))

    assert "File {it}." in system
    assert "fs_read, fs_write" in system
    assert "2026-05-03" in system
    assert f"<data-{NONCE}>" in system
    assert user == (
        f"snippet:\n<data-{NONCE}>\nAlice moved\n</data-{NONCE}>\n\n"
        f"sources:\n<data-{NONCE}>\nchat-1\n</data-{NONCE}>\n\n"
        f"related files:\n<data-{NONCE}>\nwiki/people/alice.md\n</data-{NONCE}>"
    )


def test_a_run_is_told_that_nobody_looked_for_related_files():
    event = SkillEvent("ab", "Alice moved", (), (), 1_777_777_777.0)

    user = messages(HANDLER, event, NONCE)[1]["content"]

    told_last = user.rpartition(f"</data-{NONCE}>\n\n")[2]
    assert told_last == ("related files: they could not be looked for in time, so search for them")
    assert "related files" not in told("Alice moved")[1]


@settings(deadline=None)
@given(st.text(), st.lists(st.tuples(st.sampled_from(["created", "extended"]), st.text())))
def test_a_result_is_one_short_inert_line(said, written):
    line, _is_done = concluded(said, written, "")

    assert len(line.splitlines()) == 1
    assert len(line) <= 2 * MAX_LINE_CHARACTERS + 300
    assert not re.search(r"[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]", line)
