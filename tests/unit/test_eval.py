"""``memory eval`` from argv to exit code, on a small index."""

import json
import re

import pytest

from memory import snapshot
from memory.cli import main
from memory.errors import BadEmbedding
from memory.evaluation.measures import MEASURES
from memory.providers.factory import model_info
from tests.doubles import HashEmbedder
from tests.unit.building import image_of, new_index, parsed, put

MODEL = model_info("local", "all-minilm-l6-v2")
LINE = {"query": "granite", "relevant": [{"path": "rocks.md"}]}


class Model(HashEmbedder):
    """Stands for the small model, and has no vector for one text."""

    def __init__(self):
        super().__init__(MODEL.dim)
        self.info = MODEL

    def embed_query(self, text):
        if text == "basalt":
            raise BadEmbedding("local", "a vector is zero")
        return super().embed_query(text)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr("memory.evaluation.saved_index.open_embedder", lambda *_: Model())
    monkeypatch.setenv("MEMORY_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # Whatever is found has a row, however its score is made.
    (tmp_path / "config.yml").write_text("memory: {minScoreToMention: 0}\n")
    return tmp_path


def save(home, *files):
    embedder = Model()
    index = new_index(embedder)
    for file in files:
        put(index, embedder, file)
    data = home / "data" / "memory"
    data.mkdir(parents=True)
    snapshot.write(data / "memory.msp", image_of(index), saved_at=1.0)
    return data


@pytest.fixture
def indexed(home):
    return save(
        home,
        parsed("blank.md"),
        parsed("rocks.md", ["granite and basalt"], description="Stones of the whole region"),
        parsed("tour.md", ["go and see [the old quarry](rocks.md)"]),
    )


def answer(capsys, *argv):
    assert main(["eval", "--json", *argv]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_files_ask_for_themselves(indexed, capsys):
    found = answer(capsys)

    assert (found["files"], found["chunks"], found["model"]) == (3, 2, MODEL.model)
    counts = {kind: figures["questions"] for kind, figures in found["kinds"].items()}
    assert counts == {"link": 1, "front matter": 1, "all": 2}
    figures = found["kinds"]["front matter"]
    assert list(figures["modes"]) == ["text", "vector", "hybrid"]
    lowest = pytest.approx(1 / (1 + 1.96**2), abs=1e-4)  # Wilson's interval of 1 of 1
    assert figures["modes"]["text"] == {
        name: {"value": 1.0, "low": lowest, "high": 1.0} for name in MEASURES
    }
    assert figures["table"]["recall"]["value"] == figures["table"]["recall_kept"] == 1
    assert figures["table"]["with_rows"]["value"] == 1
    assert found["off_topic"]["prompts"] == 64
    assert found["comparison"] is None


def test_the_text_has_a_table_of_each_kind_and_the_off_topic_rate(indexed, capsys):
    assert main(["eval"]) == 0

    text = capsys.readouterr().out
    assert "3 files, 2 chunks, all-minilm-l6-v2; absolute scores" in text
    assert "## link: 1 question, too few to rely on\n" in text
    assert "## all: 2 questions, too few to rely on\n" in text
    assert "| text | 1.000 (0.207\u20131.000) |" in text
    assert re.search(r"Off topic: \d+ % \(\d+\u2013\d+\) of 64 everyday prompts get a row", text)


def test_judged_questions_take_the_place_of_made_ones(home, indexed, capsys):
    (home / "q.jsonl").write_text(json.dumps(LINE))

    found = answer(capsys, "--queries", "q.jsonl")

    assert list(found["kinds"]) == ["judged"]
    assert found["kinds"]["judged"]["modes"]["text"]["MRR"]["value"] == 1


def test_a_question_without_a_vector_is_answered_by_words(home, indexed, capsys):
    (home / "q.jsonl").write_text(json.dumps(LINE | {"query": "basalt"}))

    modes = answer(capsys, "--queries", "q.jsonl")["kinds"]["judged"]["modes"]

    assert modes["vector"]["MRR"]["value"] == 0
    assert modes["hybrid"]["MRR"]["value"] == 1


def test_a_judged_file_that_is_not_indexed_is_told(home, indexed, capsys, caplog):
    line = {"query": "granite", "relevant": [{"path": "gone.md"}]}
    (home / "q.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(LINE))

    answer(capsys, "--queries", "q.jsonl")

    assert "1 of 2 questions" in caplog.text


def test_the_same_configuration_differs_by_nothing(home, indexed, capsys):
    (home / "other.yml").write_text("memory: {minScoreToMention: 0.0}\n")

    comparison = answer(capsys, "--compare", "other.yml")["comparison"]

    differences = [
        *(each for kind in comparison["kinds"].values() for each in kind.values()),
        comparison["off_topic"],
    ]
    nothing = {"difference": 0.0, "low": 0.0, "high": 0.0, "within_noise": True}
    assert all(each == nothing for each in differences)
    assert list(comparison["kinds"]["all"]) == [
        *MEASURES,
        "table recall",
        "table precision",
        "with rows",
    ]


def test_another_floor_is_seen_in_the_difference(home, indexed, capsys):
    (home / "strict.yml").write_text("memory: {minScoreToMention: 1}\n")

    comparison = answer(capsys, "--compare", "strict.yml")["comparison"]

    lost = {"difference": -1.0, "low": -1.0, "high": -1.0, "within_noise": False}
    assert comparison["rules"]["min_score_to_mention"] == 1
    assert comparison["kinds"]["front matter"]["with rows"] == lost
    assert "table precision" not in comparison["kinds"]["front matter"]


def test_a_comparison_says_what_may_be_chance(home, indexed, capsys):
    (home / "strict.yml").write_text("memory: {minScoreToMention: 1}\n")

    assert main(["eval", "--compare", "strict.yml"]) == 0

    text = capsys.readouterr().out
    assert "## strict.yml minus this configuration" in text
    assert "| R@5 | +0.000 (+0.000 to +0.000) within noise |" in text
    assert "| with rows | -1.000 (-1.000 to -1.000) |" in text


def test_a_limit_holds_for_each_kind(home, capsys):
    files = [parsed(f"{n}.md", ["x"], description=f"words about number {n}") for n in range(5)]
    save(home, *files)

    assert answer(capsys, "--limit", "3")["kinds"]["front matter"]["questions"] == 3


def test_nothing_is_written(indexed, capsys):
    before = {path: path.stat().st_mtime_ns for path in indexed.iterdir()}

    answer(capsys)

    assert {path: path.stat().st_mtime_ns for path in indexed.iterdir()} == before


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ([], "the index is empty"),
        ([parsed("blank.md")], "the index is empty"),
        ([parsed("a.md", ["words"])], "no question can be made from the indexed files"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_one_line(home, capsys, files, complaint):
    save(home, *files)

    assert main(["eval"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"memory: {complaint}")
    assert captured.err.count("\n") == 1


def test_the_refusal_says_how_to_give_questions(home, capsys):
    save(home, parsed("a.md", ["words"]))
    (home / "empty.jsonl").write_text("\n")

    assert main(["eval", "--queries", "empty.jsonl"]) == 1
    assert '--queries FILE, one JSON object a line: {"query"' in capsys.readouterr().err
