"""Which questions a file of judged questions holds."""

import json

import pytest

from memory.errors import EvaluationError
from memory.evaluation.judged import read_questions
from memory.evaluation.question import Question


@pytest.fixture
def written(tmp_path):
    file = tmp_path / "q.jsonl"

    def write(*lines):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        file.write_text("\n".join(texts), encoding="utf-8")
        return file

    return write


def test_questions_are_read_in_their_order(written):
    file = written(
        {"id": 1, "query": "who?", "relevant": [{"path": "a.md"}], "exclude": ["b.md"]},
        "",
        {
            "query": "where?",
            "relevant": [
                {"path": "a.md", "section": "Home", "grade": 2},
                {"path": "c.md", "section": "Away", "grade": 0},
            ],
        },
    )

    first, second = read_questions(file)

    assert first == Question("who?", {("a.md", ""): 1.0}, frozenset({"b.md"}))
    assert second == Question("where?", {("a.md", "Home"): 2.0})
    assert (first.by_section, second.by_section) == (False, True)


def test_paths_are_spelled_as_the_index_does(written):
    file = written({"query": "q", "relevant": [{"path": "./cafe\u0301.md"}]})

    assert read_questions(file)[0].relevant_paths == {"caf\u00e9.md"}


def test_a_file_without_questions_has_none(written):
    assert read_questions(written("", "  ")) == ()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
        ("[1]", "the line"),
        ({"relevant": [{"path": "a.md"}]}, "query: field required"),
        ({"query": 7, "relevant": [{"path": "a.md"}]}, "query"),
        ({"query": "q", "relevant": [{"section": "x"}]}, r"relevant\.0\.path"),
        ({"query": "q", "relevant": [{"path": 3}]}, r"relevant\.0\.path"),
        ('{"query": "q", "relevant": [{"path": "a", "grade": NaN}]}', r"relevant\.0\.grade"),
        ({"query": "q", "relevant": []}, "names nothing"),
        ({"query": "q", "relevant": [{"path": "a.md", "grade": 0}]}, "names nothing"),
        ({"query": " ", "relevant": [{"path": "a.md"}]}, "query is blank"),
    ],
)
def test_a_wrong_line_is_named(written, line, complaint):
    with pytest.raises(EvaluationError, match=rf"q\.jsonl:2: .*{complaint}"):
        read_questions(written("", line))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xff")

    for file in (tmp_path / "none", tmp_path, binary):
        with pytest.raises(EvaluationError, match=str(file)):
            read_questions(file)
