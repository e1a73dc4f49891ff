"""What tests of ``memory doctor`` ask of its findings."""

from __future__ import annotations

from memory import snapshot
from memory.config import load
from tests.doubles import HashEmbedder
from tests.unit.building import image_of
from tests.unit.indexed_files import indexed

NOW = 2_000_000_000.0
LOCAL = "memory: {embeddings: {provider: local}}\n"
REMOTE = "memory: {embeddings: {provider: openai, model: m}}\ninference: {apiKeys: {openai: %s}}\n"


def states(findings, name=None):
    return [each.state for each in findings if name in (None, each.name)]


def the_problem(findings):
    (found,) = [each for each in findings if each.state == "problem"]
    assert found.remedy
    return found


def settings_of(tmp_path, text):
    path = tmp_path / "config.yml"
    path.write_text(text)
    return load(path)


def saved(data, root):
    """Saves the index of a folder."""
    snapshot.write(data / "memory.msp", image_of(indexed(root, HashEmbedder())), saved_at=1.0)
