import re

import pytest
import yaml
from pydantic import BaseModel

from memory.chunk_limits import chunk_limits
from memory.config import Settings, load
from memory.embedding_config import disabled_reason
from memory.globs import Globs
from memory.markdown import parse_file
from memory.providers.factory import model_info
from memory.template import write_config, write_workspace
from memory.workspace import Workspace


def test_a_new_workspace_has_the_folders_and_the_skill(tmp_path):
    root = tmp_path / "data" / "workspace"

    assert write_workspace(root) == ("skills/memory/SKILL.md", "skills/memory/save.md")
    assert sorted(path.name for path in (root / "wiki").iterdir()) == [
        "people",
        "places",
        "threads",
    ]
    assert not list(root.rglob(".gitkeep"))


def test_existing_files_are_never_touched(tmp_path):
    (tmp_path / "skills" / "memory").mkdir(parents=True)
    (tmp_path / "skills" / "memory" / "save.md").write_text("mine")

    assert write_workspace(tmp_path) == ("skills/memory/SKILL.md",)
    assert write_workspace(tmp_path) == ()
    assert (tmp_path / "skills" / "memory" / "save.md").read_text() == "mine"


def test_the_written_configuration_can_start_and_is_the_default(tmp_path):
    config = tmp_path / "new" / "config.yml"

    assert write_config(config)
    settings = load(config)
    assert disabled_reason(settings) is None
    assert settings.memory.embeddings.provider == "local"
    assert settings.memory.model_dump(exclude={"embeddings"}) == Settings().memory.model_dump(
        exclude={"embeddings"}
    )


def test_an_existing_configuration_is_kept(tmp_path):
    config = tmp_path / "config.yml"
    config.write_text("mine: 1\n")

    assert not write_config(config)
    assert config.read_text() == "mine: 1\n"


def all_keys(model):
    for field in model.model_fields.values():
        yield field.alias
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from all_keys(field.annotation)


def test_the_written_configuration_documents_every_key_with_its_default(tmp_path):
    """Uncommenting every line gives a file that loads, and no key is missing from it."""
    config = tmp_path / "config.yml"
    write_config(config)
    text = config.read_text("utf-8")

    assert [key for key in all_keys(Settings) if not re.search(rf"\b{key}:", text)] == []

    config.write_text(re.sub(r"^(\s*)# (?=\s*[\w-]+:)", r"\1", text, flags=re.MULTILINE), "utf-8")
    memory = load(config).memory
    default = Settings().memory
    assert memory.hybrid_weights == default.hybrid_weights
    assert memory.persist_to_disk_max_delay == default.persist_to_disk_max_delay
    assert memory.max_file_bytes == default.max_file_bytes
    assert memory.max_chunk_tokens == 256


@pytest.mark.parametrize("name", ["SKILL.md", "save.md"])
def test_the_skill_files_have_front_matter_and_a_first_paragraph(tmp_path, name):
    write_workspace(tmp_path)
    text = (tmp_path / "skills" / "memory" / name).read_text("utf-8")

    _, front_matter, body = re.split(r"^---\n", text, maxsplit=2, flags=re.MULTILINE)
    heading, blank, paragraph = body.split("\n")[:3]
    assert 0 < len(yaml.safe_load(front_matter)["description"]) <= 200
    assert heading.startswith("# ")
    assert blank == ""
    assert paragraph[0].isalpha()


def test_the_save_handler_names_exactly_its_tools_and_no_model(tmp_path):
    write_workspace(tmp_path)
    text = (tmp_path / "skills" / "memory" / "save.md").read_text("utf-8")
    front_matter = yaml.safe_load(text.split("---\n")[1])

    assert front_matter["tools"] == "fs_read, fs_write, memory_search"
    assert "model" not in front_matter
    assert "# model:" in text


@pytest.mark.parametrize("name", ["SKILL.md", "save.md"])
def test_the_skill_files_keep_the_rules_they_teach(tmp_path, name):
    """Each section is one chunk of sensible size, under a trail that says what it is about."""
    write_workspace(tmp_path)
    source = Workspace(tmp_path, exclude=Globs()).read(f"skills/memory/{name}")

    parsed = parse_file(source, limits=chunk_limits(None, model_info("local", "all-minilm-l6-v2")))

    assert 3 <= len(parsed.chunks) <= 12
    assert parsed.description
    assert len({chunk.headlines for chunk in parsed.chunks}) == len(parsed.chunks)
    for chunk in parsed.chunks:
        assert chunk.num_parts == 1, chunk.headlines
        assert len(chunk.content.split()) >= 15, chunk.headlines
        assert chunk.context == parsed.chunks[0].content.split("\n")[0]


def test_the_save_handler_has_the_six_steps_and_names_the_folders_it_may_fill(tmp_path):
    write_workspace(tmp_path)
    text = (tmp_path / "skills" / "memory" / "save.md").read_text("utf-8")
    steps = re.findall(r"^(\d)\. (.+)$", text, re.MULTILINE)
    words = ("SKILL.md", "memory_search", "fs_read", "fs_write", "[[", "noop")

    assert [number for number, _step in steps] == list("123456")
    assert all(word in step for word, (_number, step) in zip(words, steps, strict=True))
    for folder in (tmp_path / "wiki").iterdir():
        assert f"{folder.name}/" in text


def test_the_skill_explains_what_a_writer_must_know(tmp_path):
    write_workspace(tmp_path)
    text = (tmp_path / "skills" / "memory" / "SKILL.md").read_text("utf-8")
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)

    assert {
        "How a file is cut into chunks",
        "The first paragraph",
        "Folders",
        "Slugs",
        "Links",
        "Read before you write",
    } <= set(sections)
