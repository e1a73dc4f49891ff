"""What does ``memory doctor`` say of the model and of the machine Ray runs on?"""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from importlib import metadata
from pathlib import Path

import pytest

from memory.doctor.embedding import model_findings
from memory.doctor.installed import is_installed
from memory.doctor.ray_runtime import ray_findings
from memory.errors import ProviderUnavailable
from tests.doubles import HashEmbedder
from tests.unit.findings import LOCAL, REMOTE, settings_of, states, the_problem


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return folder


# The model


@pytest.fixture
def local(tmp_path):
    return settings_of(tmp_path, LOCAL)


def test_a_model_that_embeds_is_well_and_a_probe_is_one_short_text(local):
    embedder = HashEmbedder(384)

    findings = list(model_findings(local, is_offline=False, opened=lambda *_: embedder))

    assert states(findings) == ["ok", "ok"]
    assert embedder.queries == ["memory"]
    assert "call" not in findings[-1].detail


def test_a_probe_of_a_provider_says_that_it_costs_a_call(tmp_path):
    settings = settings_of(tmp_path, REMOTE % "sk-canary")

    findings = list(model_findings(settings, is_offline=False, opened=lambda *_: HashEmbedder()))

    assert findings[-1].detail == "embeds, dimension 16 (one call to the provider)"


def test_offline_asks_nobody(local):
    def refuse(*_):
        raise AssertionError

    assert states(model_findings(local, is_offline=True, opened=refuse)) == ["ok", "note"]


def test_a_missing_package_is_a_problem_with_the_command_that_helps(local, monkeypatch):
    monkeypatch.setattr("memory.doctor.embedding.is_installed", lambda name: name != "tokenizers")

    found = the_problem(model_findings(local, is_offline=False))

    assert found.detail == "missing: tokenizers"
    assert found.remedy.startswith("pip install")


def test_a_model_that_does_not_answer_in_time_is_a_problem(local):
    release = threading.Event()

    def hang(*_):
        release.wait(20)

    found = the_problem(model_findings(local, is_offline=False, opened=hang, deadline_s=0.01))
    release.set()

    assert found.detail == "no vector of a short text within 0.01 s"


def test_what_a_provider_says_is_passed_on(local):
    def fail(*_):
        raise ProviderUnavailable("openai", "429")

    found = the_problem(model_findings(local, is_offline=False, opened=fail))
    assert found.detail == "openai: 429"


def test_another_dimension_than_the_model_has_is_a_problem(local):
    found = the_problem(model_findings(local, is_offline=False, opened=lambda *_: HashEmbedder()))

    assert "dimension 16 instead of 384" in found.detail


# Ray


@pytest.fixture
def ray_looks(tmp_path, data, monkeypatch):
    monkeypatch.setattr("memory.doctor.ray_runtime.is_installed", lambda _name: True)
    monkeypatch.setattr(metadata, "version", lambda _name: "2.60.0")

    def look(environment=None, config=""):
        if config:
            (tmp_path / "ray_config.yaml").write_text(config)
        return list(ray_findings(data, tmp_path / "config.yml", environment or {}, tmp_path))

    return look


def test_a_usual_machine_can_run_ray(ray_looks):
    assert set(states(ray_looks(config="cluster: {objectStoreMiB: 1}\n"))) == {"ok"}


@pytest.mark.parametrize(
    ("environment", "config", "said"),
    [
        ({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}, "", "all interfaces"),
        ({"RAY_AUTH_MODE": "disabled"}, "", "without a token"),
        ({}, "dashboard: {enabled: true, host: 0.0.0.0}\n", "dashboard listens on 0.0.0.0"),
        ({}, "cluster: {objectStoreMiB: 900000000}\n", "would use the disk"),
        ({}, "cluster: [\n", "ray_config.yaml:1"),
    ],
)
def test_what_ray_would_do_wrong_is_named(ray_looks, environment, config, said):
    assert said in the_problem(ray_looks(environment, config)).detail


def test_a_cluster_of_ones_own_has_ports_to_keep_private(ray_looks):
    findings = ray_looks({}, "cluster: {address: 'head:6379'}\n")

    assert [each.detail for each in findings if each.state == "note"] == [
        "joins the cluster at head:6379"
    ]


@pytest.mark.parametrize("version", ["2.51.9", "1.13.0"])
def test_a_ray_without_tokens_is_refused(ray_looks, monkeypatch, version):
    """FAULTS 78."""
    monkeypatch.setattr(metadata, "version", lambda _name: version)

    assert version in the_problem(ray_looks()).detail


def test_a_package_is_looked_for_and_not_imported():
    assert is_installed("json.tool")
    assert not is_installed("ray")  # see ``tests.no_ray``
    assert not is_installed("no_such_package.module")


def test_a_missing_ray_is_a_problem(ray_looks, monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)

    assert the_problem(ray_looks()).detail == "not installed"


def test_a_long_temporary_folder_is_left_for_a_short_one(ray_looks, tmp_path, monkeypatch):
    """FAULTS 74: the path of a socket has 107 bytes at most."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * 60)))

    (found,) = [each for each in ray_looks() if each.name == "temporary folder"]
    assert found.state == "ok"
    assert found.detail.startswith("/tmp/memory-")


def test_something_foreign_in_the_place_of_the_sockets_is_a_problem(ray_looks, monkeypatch):
    folder = Path(tempfile.mkdtemp(prefix="m")) / "place"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder))
        monkeypatch.setattr("memory.doctor.ray_runtime.private_folder", lambda _data: folder)

        assert "is not a folder of yours" in the_problem(ray_looks()).detail
    shutil.rmtree(folder.parent)
