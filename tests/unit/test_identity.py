"""Is an index used, probed or rebuilt?"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from memory.embedding_input import INPUT_FORMAT_VERSION
from memory.identity import (
    EMBEDDING_JSON,
    Decision,
    Identity,
    Recorded,
    decide,
    needs_writing,
    read_embedding_json,
    write_embedding_json,
)
from memory.providers.base import ModelInfo

SMALL = Identity("openai", "small", 1536, "", INPUT_FORMAT_VERSION)
LARGE = Identity("openai", "large", 3072, "", INPUT_FORMAT_VERSION)
RECORDED_SMALL = Recorded("openai", "small", 1536)
RECORDED_LARGE = Recorded("openai", "large", 3072)

MATRIX = {
    # (embedding.json, header of memory.msp): (load, probe), with SMALL configured
    (RECORDED_SMALL, SMALL): (True, False),
    (RECORDED_LARGE, SMALL): (True, False),
    (None, SMALL): (True, True),
    (RECORDED_SMALL, LARGE): (False, False),
    (RECORDED_LARGE, LARGE): (False, True),
    (None, LARGE): (False, True),
    (RECORDED_SMALL, None): (False, False),
    (RECORDED_LARGE, None): (False, True),
    (None, None): (False, True),
}


@pytest.mark.parametrize(("state", "expected"), MATRIX.items(), ids=range(9))
def test_the_header_wins_and_the_json_only_saves_a_trial_call(state, expected):
    """FAULTS 11 and 12."""
    recorded, header = state
    decision = decide(recorded, header, SMALL)

    assert (decision.load, decision.probe) == expected


def test_equal_identities_need_nothing_and_say_nothing():
    assert decide(RECORDED_SMALL, SMALL, SMALL) == Decision(load=True, probe=False, reason="")


@pytest.mark.parametrize("state", [state for state in MATRIX if state != (RECORDED_SMALL, SMALL)])
def test_everything_else_has_a_reason(state):
    assert decide(*state, SMALL).reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"provider": "mistral"}, "provider changed from mistral to openai"),
        ({"model": "ada"}, "model changed from ada to small"),
        ({"dim": 768}, "dimension changed from 768 to 1536"),
        ({"base_url": "http://a"}, "base URL changed from http://a to none"),
        ({"input_format": 0}, "input format changed from none to"),
    ],
)
def test_each_part_of_the_identity_forces_a_rebuild_and_is_named(change, said):
    decision = decide(RECORDED_SMALL, replace(SMALL, **change), SMALL)

    assert not decision.load
    assert said in decision.reason


def test_a_dimension_that_only_a_call_can_tell_is_no_difference():
    unknown = replace(SMALL, dim=0)

    assert decide(RECORDED_SMALL, SMALL, unknown) == Decision(load=True, probe=False, reason="")


def test_a_probe_that_finds_another_dimension_ends_in_a_rebuild():
    """The one who probed asks again with what was found."""
    assert decide(None, SMALL, replace(SMALL, dim=1536)).load
    assert not decide(None, SMALL, replace(SMALL, dim=512)).load


def test_the_identity_of_a_model():
    info = ModelInfo("gateway", "m", 8, 512, 0.1, 0.3, base_url="http://localhost:1")

    assert Identity.of(info) == Identity(
        "gateway", "m", 8, "http://localhost:1", INPUT_FORMAT_VERSION
    )


def test_embedding_json_is_what_people_expect_to_read(tmp_path):
    write_embedding_json(tmp_path, SMALL)

    content = json.loads((tmp_path / EMBEDDING_JSON).read_text())
    assert content == {"provider": "openai", "model": "small", "dimension": 1536}
    assert read_embedding_json(tmp_path) == RECORDED_SMALL


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"provider": "openai", "model": "small"}',
        b'{"provider": 1, "model": "small", "dimension": 8}',
        b"[" * 60_000,
        b'{"dimension": ' + b"9" * 5000 + b"}",
    ],
)
def test_an_unreadable_embedding_json_counts_as_missing(tmp_path, content):
    (tmp_path / EMBEDDING_JSON).write_bytes(content)

    assert read_embedding_json(tmp_path) is None


def test_a_missing_embedding_json(tmp_path):
    assert read_embedding_json(tmp_path) is None


def test_a_written_embedding_json_needs_no_writing(tmp_path):
    write_embedding_json(tmp_path, SMALL)

    assert not needs_writing(tmp_path, SMALL)


@pytest.mark.parametrize(
    "change", [{"provider": "mistral"}, {"model": "ada"}, {"dim": 768}], ids=str
)
def test_one_that_says_something_else_needs_writing(tmp_path, change):
    write_embedding_json(tmp_path, replace(SMALL, **change))

    assert needs_writing(tmp_path, SMALL)


@pytest.mark.parametrize("content", [None, b"", b'{"provider": "openai"}'])
def test_one_that_is_missing_or_unreadable_needs_writing_once(tmp_path, content):
    """FAULTS 12: else every start would probe, until some file changes."""
    if content is not None:
        (tmp_path / EMBEDDING_JSON).write_bytes(content)
    assert needs_writing(tmp_path, SMALL)

    write_embedding_json(tmp_path, SMALL)
    assert not needs_writing(tmp_path, SMALL)
    assert not decide(read_embedding_json(tmp_path), SMALL, SMALL).probe


def test_an_unknown_dimension_is_not_written(tmp_path):
    """It would take the place of the trial call that finds it, or hide the one that was found."""
    unknown = replace(SMALL, dim=0)
    assert not needs_writing(tmp_path, unknown)

    write_embedding_json(tmp_path, LARGE)
    assert not needs_writing(tmp_path, unknown)


def test_what_is_no_part_of_embedding_json_needs_no_writing(tmp_path):
    write_embedding_json(tmp_path, SMALL)

    assert not needs_writing(tmp_path, replace(SMALL, base_url="http://a", input_format=0))
