"""Does any command let a file, a name or a configuration move the cursor (FAULTS 87)?

Every command runs on an index, a workspace, an outbox and a configuration full of escape sequences.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memory import snapshot
from memory.analysis import Analyzer
from memory.cli import main
from memory.config import Settings
from memory.identity import write_embedding_json
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.outbox import OUTBOX_NAME, Outbox, SkillEvent, event_id
from tests.unit.building import image_of
from tests.unit.test_disk import MODEL, WordEmbedder, index_file

ROOT = Path(__file__).parents[2]
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u200bred"
LIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
CONFIG = r"""
memry: {}
core: {"workspac\e": 1}
memory:
  embeddings: {provider: local}
  language: "english"
"""
BAD_CONFIG = r"""
memory: {"langage\e[31m\u202e": 1, language: ["\e[2J"], scoring: "\e[2J"}
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder whose every name and text is hostile."""
    home = tmp_path / f"home{ESCAPE}"
    root, data = home / "workspace", home / "data" / "memory"
    data.mkdir(parents=True)
    index = MemoryIndex(
        MODEL,
        Analyzer("english"),
        IndexSettings.of(Settings().memory, workspace=str(root)),
        epoch="e",
    )
    for name in (f"a{ESCAPE}.md", f"in{ESCAPE}/b.md"):
        index_file(index, root, name, f"Ships {ESCAPE} sailed.", f"Title {ESCAPE}")
    (root / f"link{ESCAPE}.md").symlink_to("nowhere")
    (root / f"new{ESCAPE}.md").write_text(f"# {ESCAPE}\n\n{ESCAPE}\n")
    snapshot.write(data / "memory.msp", image_of(index), saved_at=1.0)
    write_embedding_json(data, index.identity)
    fact = f"Alice {ESCAPE}"
    Outbox(data / OUTBOX_NAME).add(SkillEvent(event_id(fact), fact, (), (), 12.5))
    (home / "config.yml").write_text(CONFIG)
    monkeypatch.setenv("MEMORY_HOME", str(home))
    monkeypatch.setattr("memory.providers.factory.open_embedder", lambda *_: WordEmbedder())
    return home


COMMANDS = [
    *(["search", "ships"], ["search", "ships", "--explain"], ["list"], ["status"]),
    *(["show", f"a{ESCAPE}.md"], ["show", f"no{ESCAPE}.md"], ["context", "ships"]),
    *(["events"], ["check"], ["check", "--rebuild-compare"], ["doctor", "--offline"], ["eval"]),
    *(["rebuild", "--dry-run"], ["save", ESCAPE], ["stop"], ["init"]),
    *(["list", "--data", f"no{ESCAPE}"], ["list", "--workspace", f"no{ESCAPE}"]),
    ["list", "--config", f"no{ESCAPE}.yml"],
]


@pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda command: " ".join(command)[:20].split("\x1b")[0]
)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_no_command_prints_an_escape_sequence(home, capsys, command, form):
    with contextlib.suppress(SystemExit):  # not every command has --json
        main([*command, *form])
    shown = capsys.readouterr()

    assert not LIVE.search(shown.out + shown.err)
    assert shown.out + shown.err
    if form and shown.out.strip():
        json.loads(shown.out)


def test_no_complaint_about_a_configuration_is_an_escape_sequence(home, capsys):
    (home / "config.yml").write_text(BAD_CONFIG)

    assert main(["search", "ships"]) == 1
    shown = capsys.readouterr().err
    assert "language" in shown
    assert not LIVE.search(shown)


@pytest.mark.slow
def test_no_line_of_the_log_is_an_escape_sequence(home):
    """In a process of its own, because here the log goes elsewhere."""
    done = subprocess.run(
        [sys.executable, "-m", "memory", "search", "ships"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )

    assert "did you mean memory?" in done.stderr
    assert "did you mean workspace?" in done.stderr
    assert not LIVE.search(done.stdout + done.stderr)
