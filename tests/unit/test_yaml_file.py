from itertools import pairwise

import pytest

from memory.errors import ConfigError
from memory.yaml_file import read_yaml


@pytest.fixture
def read(tmp_path):
    path = tmp_path / "config.yml"

    def read_text(text):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_yaml(path)

    return read_text


def test_each_key_knows_its_line(read):
    file = read("# note\nmemory:\n  language: german\n  hybridWeights:\n    text: 1\n")

    assert file.data == {"memory": {"language": "german", "hybridWeights": {"text": 1}}}
    assert file.lines[("memory",)] == 2
    assert file.lines[("memory", "language")] == 3
    assert file.lines[("memory", "hybridWeights", "text")] == 5


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "\ufeff"])
def test_an_empty_file_is_an_empty_mapping(read, text):
    assert read(text).data == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\nb: 2\na: 3\n", ":3: a is set twice (first on line 1)"),
        ("a:\n  b: 1\n  b: 2\n", ":3: a.b is set twice (first on line 2)"),
        ("a:\n\tb: 1\n", ":2: a tab cannot indent YAML, use spaces"),
        ("- a\n", ": expected keys and values at the top level"),
        ("a: [1\n", ":1: expected ',' or ']', but got '<stream end>'"),
        ("a: !!python/object:os.system x\n", ":1: could not determine a constructor"),
        ("a: " + "[" * 1000, ": not readable as YAML (RecursionError)"),
        (b"a: \xff\n", ": not UTF-8 at byte 3"),
        ("a: \x00\n", ": not readable as YAML (ReaderError)"),
        ("a: !!timestamp x\n", ": not readable as YAML (AttributeError)"),
        ("a: !!int ''\n", ": not readable as YAML (IndexError)"),
        ("a: !!bool x\n", ": not readable as YAML (KeyError)"),
        ("a: 1\nb: [{c: " + "9" * 101 + "}]\n", ":2: a number of more than 100 characters"),
        ("a: 1" + ":1" * 100_000 + "\n", ":1: a number of more than 100 characters"),
        ("#" * (1024 * 1024 + 1), ": larger than 1,048,576 bytes"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_line(read, text, complaint):
    with pytest.raises(ConfigError) as refused:
        read(text)

    assert f"config.yml{complaint}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_syntax_error_never_quotes_the_file(read):
    with pytest.raises(ConfigError) as refused:
        read("inference:\n  apiKeys:\n    openai: sk-canary: oops\n")

    assert ":3: " in str(refused.value)
    assert "canary" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_missing_file_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        read_yaml(tmp_path / "none.yml")


def test_aliases_that_contain_themselves_end(read):
    assert set(read("a: &x\n  b: *x\nc: *x\n").data) == {"a", "c"}


def _layers(fill):
    """Returns seven mappings; each holds what ``fill`` makes of the name of the one before."""
    layers = "".join(f"{name}: &{name} {fill(before)}\n" for before, name in pairwise("abcdefg"))
    return f"a: &a {{x: 1, y: 2}}\n{layers}"


def test_merges_of_merges_are_refused_before_they_multiply(read):
    """Six layers of nine are 2 * 9 ** 6 keys, which take gigabytes."""
    bomb = _layers(lambda before: f"{{<<: [{', '.join([f'*{before}'] * 9)}]}}")

    with pytest.raises(ConfigError, match="merges more than 10,000 keys"):
        read(bomb)


def test_a_merge_that_somebody_means_is_read(read):
    file = read("base: &base {a: 1, b: 2}\nmemory:\n  <<: *base\n  b: 3\n")

    assert file.data["memory"] == {"a": 1, "b": 3}


def test_a_key_that_is_no_text_is_never_written_out(read):
    """As text it would be as large as all that its aliases stand for, 9 ** 6 items."""
    bomb = _layers(lambda before: f"[{', '.join([f'*{before}'] * 9)}]") + "? *g\n: 1\n"

    with pytest.raises(ConfigError, match="found unhashable key"):
        read(bomb)
