"""What the command line answers from a saved index, without a daemon."""

import hashlib
import json
import os
import subprocess
import sys
import unicodedata
from dataclasses import replace

import numpy as np
import pytest

from memory import snapshot
from memory.analysis import Analyzer
from memory.cli import main
from memory.config import InferenceSettings, Settings
from memory.disk import context, list_files, search, show, status
from memory.errors import ProviderUnavailable, SnapshotMissing, WorkspaceError
from memory.index import MemoryIndex
from memory.index_settings import IndexSettings
from memory.messages import Chunk, FileUpdate, ParsedFile, Query
from memory.providers.factory import model_info
from tests.unit.building import image_of

SAVED_AT = 1_778_587_200.0
MODEL = model_info("local", "all-minilm-l6-v2")
GATEWAY = {"type": "openai-compatible", "baseUrl": "http://x/v1"}
FILES = {
    "wiki/people/alice.md": ("Alice is the main contact at Acme.", "Acme contact"),
    "wiki/places/caf\u00e9.md": ("A quiet caf\u00e9 in Zurich.", "Cafe"),
    "mail/rule.md": ("Forward invoices about Acme to the bank.", "Rule"),
}

recorder = {"on": False, "opened": []}


def record_open(event, args):
    if recorder["on"] and event == "open":
        recorder["opened"].append(args[0])


# An audit hook stays for the life of the process.
sys.addaudithook(record_open)


class WordEmbedder:
    """Gives each word a direction of its own, so texts with common words are similar."""

    def embed_query(self, text):
        vector = np.zeros(MODEL.dim, np.float32)
        for word in text.lower().split():
            vector[int(hashlib.sha256(word.strip(".").encode()).hexdigest(), 16) % MODEL.dim] += 1
        return vector / np.linalg.norm(vector)

    def embed_queries(self, texts):
        return np.stack([self.embed_query(text) for text in texts])


def chunk_of(text, title):
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Chunk(f"# {title}", "", text, digest, 1, 1, 1, 3)


def index_file(index, root, path, text, title):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    found = file.stat()
    chunk = chunk_of(text, title)
    parsed = ParsedFile(
        path=path,
        raw_path=path,
        mtime_ns=found.st_mtime_ns,
        size=found.st_size,
        inode=found.st_ino,
        title=title,
        description="",
        summary=text,
        tags=(),
        dates=(),
        num_replaced_bytes=0,
        chunks=(chunk,),
    )
    vectors = WordEmbedder().embed_query(text)[None]
    index.apply(FileUpdate(path, parsed, (chunk.content_hash,), vectors))


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A data folder with an index of three files."""
    monkeypatch.setattr("memory.providers.factory.open_embedder", lambda *_: WordEmbedder())
    monkeypatch.setenv("MEMORY_HOME", str(tmp_path))
    return saved_index(tmp_path, MODEL)


def saved_index(tmp_path, model):
    root = tmp_path / "workspace"
    settings = IndexSettings.of(Settings().memory, workspace=str(root))
    index = MemoryIndex(model, Analyzer("english"), settings, epoch="e")
    for path, (text, title) in FILES.items():
        index_file(index, root, path, text, title)
    data = tmp_path / "data" / "memory"
    data.mkdir(parents=True)
    snapshot.write(data / "memory.msp", image_of(index), saved_at=SAVED_AT)
    return data


def found(data, text, *, limit=5, workspace=None):
    return search(data, Settings(), Query(text, limit), workspace=workspace, now_s=SAVED_AT + 90)


def test_a_listing_has_every_file_sorted(saved):
    assert [(item["path"], item["chunks"]) for item in list_files(saved)] == [
        ("mail/rule.md", 1),
        ("wiki/people/alice.md", 1),
        ("wiki/places/caf\u00e9.md", 1),
    ]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_file_is_shown_whatever_the_normalisation_of_the_path(saved, form):
    shown = show(saved, unicodedata.normalize(form, "./wiki/places/caf\u00e9.md"))

    assert shown["path"] == "wiki/places/caf\u00e9.md"
    assert [chunk["content"] for chunk in shown["chunks"]] == ["A quiet caf\u00e9 in Zurich."]


HOSTILE_PATHS = [
    "../../etc/passwd",
    "../../../../../../etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "wiki/../../x.md",
    "wiki/people/../people/alice.md",
    "wiki//people/alice.md",
    "wiki/people/alice.md/",
    "wiki/people/alice.md\x00",
    "wiki/people/alice.md\n",
    "\x00",
    "~",
    "~/.ssh/id_rsa",
    "~root/x",
    "%2e%2e/%2e%2e/etc/passwd",
    "wiki%2fpeople%2falice.md",
    "file:///etc/passwd",
    "wiki\\people\\alice.md",
    "WIKI/PEOPLE/ALICE.MD",
    "\udcff.md",
    "x" * 5000,
    "*",
    "",
    ".",
]


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_a_path_that_is_not_in_the_index_is_refused(saved, path):
    """FAULTS 86."""
    with pytest.raises(WorkspaceError, match="not in the index"):
        show(saved, path)


def test_no_path_that_is_asked_for_is_ever_opened(saved, tmp_path, capsys):
    """FAULTS 86: the index alone answers, also for files that exist."""
    (tmp_path / "secret.md").write_text("secret")
    main(["show", "wiki/people/alice.md"])  # imports what a first call opens
    recorder.update(on=True, opened=[])

    codes = [main(["show", path]) for path in [*HOSTILE_PATHS, "../secret.md"]]
    codes.append(main(["show", "wiki/people/alice.md"]))

    recorder["on"] = False
    opened = recorder["opened"]
    touched = {os.fsdecode(path) for path in opened if isinstance(path, str | bytes | os.PathLike)}
    assert codes == [1] * (len(HOSTILE_PATHS) + 1) + [0]
    assert touched == {str(saved / name) for name in ("memory.msp", "memory.wal", "daemon.json")}
    assert capsys.readouterr().err.count("not in the index") == len(HOSTILE_PATHS) + 1


def test_a_search_uses_words_and_vectors_and_says_its_age(saved):
    answer = found(saved, "Acme contact")

    assert answer["hits"][0]["path"] == "wiki/people/alice.md"
    assert answer["hits"][0]["text_score"] > 0
    assert answer["hits"][0]["vector_score"] > 0
    assert (answer["source"], answer["age_s"], answer["degraded"]) == ("disk", 90, "")


def test_a_search_obeys_its_limit(saved):
    assert len({hit["path"] for hit in found(saved, "Acme")["hits"]}) == 2
    assert len({hit["path"] for hit in found(saved, "Acme", limit=1)["hits"]}) == 1


def test_a_model_that_fails_leaves_the_words_and_says_why(saved, monkeypatch):
    """FAULTS 82."""

    class Failing:
        def embed_queries(self, texts):
            raise ProviderUnavailable("local", "out of order")

    monkeypatch.setattr("memory.providers.factory.open_embedder", lambda *_: Failing())

    answer = found(saved, "Acme")

    assert {hit["path"] for hit in answer["hits"]} == {"mail/rule.md", "wiki/people/alice.md"}
    assert answer["degraded"] == "no query embedding: local: out of order"


def test_hits_tell_whether_the_file_changed_since(saved, tmp_path):
    (tmp_path / "workspace" / "mail" / "rule.md").write_text("Something else about Acme.")

    fresh = {hit["path"]: hit["fresh"] for hit in found(saved, "Acme")["hits"]}
    elsewhere = found(saved, "Acme", workspace=tmp_path)["hits"]

    assert fresh == {"mail/rule.md": False, "wiki/people/alice.md": True}
    assert not any(hit["fresh"] for hit in elsewhere)


def test_a_blank_query_finds_nothing(saved):
    assert found(saved, " \n")["hits"] == []


def test_the_context_lists_the_files_that_clear_the_floor(saved):
    answer = context(saved, Settings(), "Alice is the main contact at Acme.")

    (first, *_) = answer["rows"]
    assert first["path"] == "wiki/people/alice.md"
    assert first["description"] == "Alice is the main contact at Acme."
    assert "| `wiki/people/alice.md` |" in answer["section"]


def test_a_long_prompt_is_asked_part_by_part(saved):
    chatter = "Fold each napkin of the banquet into a swan before any guest has come in at all. "
    question = "Who is the main contact at Acme?"
    answer = found(saved, f"{chatter * 3}{question}")

    assert answer["hits"][0]["path"] == "wiki/people/alice.md"
    assert answer["hits"][0]["part"] == question


def test_a_copy_has_no_row_of_its_own_but_is_found(tmp_path, saved):
    text, title = FILES["wiki/people/alice.md"]
    index = MemoryIndex(MODEL, Analyzer("english"), IndexSettings(), epoch="e")
    for path in ("wiki/alice.md", "wiki/alice (1).md"):
        index_file(index, tmp_path, path, text, title)
    snapshot.write(saved / "memory.msp", image_of(index), saved_at=SAVED_AT)

    rows = context(saved, Settings(), text)["rows"]
    # Its path has fewer other words.
    assert [row["path"] for row in rows] == ["wiki/alice.md"]
    assert len(found(saved, text)["hits"]) == 2


def test_a_blank_prompt_has_no_section(saved):
    assert context(saved, Settings(), " ") == {"section": "", "rows": [], "degraded": ""}


def test_the_status_of_the_disk_tells_counts_model_and_age(saved):
    answer = status(saved, SAVED_AT + 60)

    assert (answer["state"], answer["ready"]) == ("stopped", False)
    assert (answer["files"], answer["chunks"], answer["snapshot_age_s"]) == (3, 3, 60)
    assert answer["embedding"] == {"provider": "local", "model": MODEL.model, "dimension": 384}


def test_the_status_of_the_disk_tells_what_was_begun_with_another_model(saved):
    assert status(saved, SAVED_AT)["building"] is None
    model = replace(MODEL, model="new", dim=8)
    index = MemoryIndex(model, Analyzer("english"), IndexSettings(), epoch="e")
    (saved / "next").mkdir()
    snapshot.write(saved / "next" / "memory.msp", image_of(index), saved_at=SAVED_AT)

    answer = status(saved, SAVED_AT)

    assert answer["embedding"]["model"] == MODEL.model
    assert answer["building"] == {
        "provider": "local",
        "model": "new",
        "dimension": 8,
        "files": 0,
        "chunks": 0,
        "words_only": "",
    }


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (replace(MODEL, provider="groq", model="m"), "groq: this provider does not expose"),
        (replace(MODEL, base_url="http://a"), "base URL changed from http://a to none"),
        (replace(MODEL, dim=8), "dimension changed from 8 to 384"),
    ],
)
def test_an_index_of_a_model_that_cannot_be_asked_answers_by_words(saved, tmp_path, model, reason):
    index = MemoryIndex(model, Analyzer("english"), IndexSettings(), epoch="e")
    text = "Alice is the main contact at Acme."
    chunk = chunk_of(text, "Acme contact")
    file = ParsedFile("a.md", "a.md", 1, 9, 1, "", "", text, (), (), 0, (chunk,))
    vectors = np.eye(1, model.dim, dtype=np.float32)
    index.apply(FileUpdate("a.md", file, (chunk.content_hash,), vectors))
    snapshot.write(saved / "memory.msp", image_of(index), saved_at=SAVED_AT)

    answer = found(saved, "Acme")

    assert [hit["path"] for hit in answer["hits"]] == ["a.md"]
    assert answer["degraded"].startswith("no query embedding")
    assert reason in answer["degraded"]
    assert context(saved, Settings(), "Acme contact")["degraded"] == answer["degraded"]


def test_without_an_index_every_answer_is_the_same_error(tmp_path):
    for call in (
        lambda: list_files(tmp_path),
        lambda: show(tmp_path, "a.md"),
        lambda: status(tmp_path, 0),
        lambda: found(tmp_path, "q"),
        lambda: context(tmp_path, Settings(), "q"),
    ):
        with pytest.raises(SnapshotMissing):
            call()


@pytest.mark.parametrize("argv", [["list"], ["show", "mail/rule.md"], ["search", "Acme"]])
def test_commands_print_json_or_text_from_the_disk(saved, capsys, argv):
    assert main([*argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)

    assert main(argv) == 0
    text = capsys.readouterr().out
    assert "mail/rule.md" in text
    assert "source: disk, written" in text.splitlines()[0]


def test_a_search_takes_its_limit_from_the_configuration(saved, tmp_path, capsys):
    (tmp_path / "config.yml").write_text(
        "memory: {embeddings: {provider: local}, maxToolMemoryResults: 1}\n"
    )

    assert main(["search", "Acme", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["hits"]) == 1


def test_the_saved_language_answers_whatever_is_configured_by_now(saved, tmp_path, capsys):
    (tmp_path / "config.yml").write_text("memory: {language: german}\n")

    assert main(["search", "contacts", "--json"]) == 0
    (hit,) = json.loads(capsys.readouterr().out)["hits"]
    assert hit["path"] == "wiki/people/alice.md"


# Import names of what a search from disk may use; all else would only cost it time.
NEEDED = {
    "Stemmer",
    "annotated_types",
    "faiss",
    "memory",
    "msgpack",
    "numpy",
    "packaging",
    "pydantic",
    "pydantic_core",
    "regex",
    "typing_extensions",
    "typing_inspection",
    "whoosh",
    "yaml",
}
# Parts of the standard library that take long, and modules of our own that only others need.
NEEDLESS = {
    "asyncio",
    "concurrent",
    "multiprocessing",
    "unittest",
    "xml",
    "memory.bulk",
    "memory.clock",
    "memory.front_matter",
    "memory.index_opening",
    "memory.markdown",
    "memory.mounts",
    "memory.orama_scoring",
    "memory.outbox",
    "memory.splitting",
    "memory.template",
    "memory.workspace",
}
SEARCH_WITHOUT_MODEL = """
import json, os, sys
at_start = set(sys.modules)
import memory.disk
def embedded(model, text, settings):
    import numpy as np
    return np.full(model.dim, model.dim**-0.5, np.float32), ""
memory.disk._embed = embedded
from memory.cli import main
code = main(["search", "Acme", "--data", sys.argv[1], "--config", sys.argv[2]])
print(json.dumps({
    "code": code,
    "imported": sorted(set(sys.modules) - at_start),
    "num_threads": len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 1,
}))
"""


@pytest.fixture
def cold_search(saved, tmp_path):
    """Output of a search in a process of its own, and what that process knows of itself."""
    config = tmp_path / "config.yml"
    config.write_text("memory: {embeddings: {provider: local}, language: english}\n")
    environment = {key: value for key, value in os.environ.items() if "OPENBLAS" not in key}
    done = subprocess.run(
        [sys.executable, "-c", SEARCH_WITHOUT_MODEL, str(saved), str(config)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    *answer, facts = done.stdout.splitlines()
    return "\n".join(answer), json.loads(facts)


def roots(modules):
    """Returns the import names of packages; Cython and SWIG make modules that are no files."""
    made = ("_cython_", "cython_runtime", "swig_runtime_data", "_sysconfigdata_", "_distutils_hack")
    return {name.partition(".")[0] for name in modules if not name.startswith(made)}


@pytest.mark.slow
def test_a_cold_search_imports_only_what_it_needs(cold_search):
    """Most of its time is spent on imports."""
    answer, facts = cold_search

    assert facts["code"] == 0
    assert "wiki/people/alice.md" in answer
    assert {"faiss", "numpy", "pydantic", "whoosh"} <= roots(facts["imported"])
    assert roots(facts["imported"]) - set(sys.stdlib_module_names) <= NEEDED
    assert NEEDLESS & set(facts["imported"]) == set()


@pytest.mark.slow
def test_a_cold_search_starts_no_threads(cold_search):
    """Those of the linear algebra libraries would cost as much as numpy's import."""
    answer, facts = cold_search

    assert "wiki/people/alice.md" in answer
    assert facts["num_threads"] == 1


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        ({}, "nor inference.customProviders"),
        ({"customProviders": {"gw": {**GATEWAY, "apiKey": "env:MEMORY_NO_KEY"}}}, "is not set"),
        ({"customProviders": {"gw": {**GATEWAY, "baseUrl": "http://y/v1"}}}, "http://x/v1"),
    ],
)
def test_without_access_to_its_provider_an_index_is_searched_by_words(
    tmp_path, monkeypatch, groups, told
):
    """SPEC S8: the shell of a person may lack the key that the daemon has."""
    monkeypatch.delenv("MEMORY_NO_KEY", raising=False)
    model = replace(MODEL, provider="gw", model="m", base_url="http://x/v1")
    data = saved_index(tmp_path, model)
    settings = Settings(inference=InferenceSettings.model_validate(groups))

    answer = search(data, settings, Query("Acme", 5), workspace=None, now_s=SAVED_AT)

    assert answer["hits"][0]["path"] == "wiki/people/alice.md"
    assert told in answer["degraded"]
