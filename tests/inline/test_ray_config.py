"""What ray_config.yaml allows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from actors.ray_config import (
    MAX_DEFAULT_WORKERS,
    RAY_CONFIG_NAME,
    ActorOptions,
    EmbedderOptions,
    RayConfig,
    load_ray_config,
    packaged_ray_config,
)
from memory.errors import ConfigError
from memory.yaml_file import read_yaml

if TYPE_CHECKING:
    from pathlib import Path


def load(folder: Path, text: str) -> RayConfig:
    (folder / RAY_CONFIG_NAME).write_text(text)
    return load_ray_config(folder)


def test_the_packaged_file_says_what_the_code_assumes_without_it(tmp_path: Path):
    assert load_ray_config(tmp_path) == RayConfig()


def test_the_packaged_file_shows_every_key():
    written = read_yaml(packaged_ray_config()).data
    known = RayConfig().model_dump(by_alias=True)

    assert {group: set(written[group]) for group in written} == {
        group: set(known[group]) for group in known
    }


def test_a_file_beside_the_configuration_replaces_the_packaged_one(tmp_path: Path):
    config = load(
        tmp_path,
        "embedder: {workers: 3}\n"
        "actors:\n"
        "  IndexKeeper: {numCpus: 0.5, numGpus: 1, maxRestarts: 2, resources: {big: 1}}\n",
    )

    assert config.embedder.num_workers() == 3
    assert config.actors.index_keeper == ActorOptions(
        num_cpus=0.5, num_gpus=1, max_restarts=2, resources={"big": 1}
    )
    assert config.actors.chunker == ActorOptions()
    assert config.cluster == RayConfig().cluster


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_file_leaves_everything_as_packaged(tmp_path: Path, text: str):
    assert load(tmp_path, text) == RayConfig()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("clusters: {}\n", ":1: clusters: unknown key, did you mean cluster?"),
        ("embedder:\n  worker: 2\n", ":2: embedder.worker: unknown key, did you mean workers?"),
        (
            "actors:\n  Keeper: {}\n",
            ":2: actors.Keeper: unknown key, did you mean IndexKeeper?",
        ),
        (
            "actors:\n  Watcher:\n    max_restarts: 1\n",
            ":3: actors.Watcher.max_restarts: unknown key, did you mean maxRestarts?",
        ),
        ("embedder: {workers: -1}\n", ":1: embedder.workers: -1 is outside 0\u20131000"),
        ("dashboard: {port: 70000}\n", ":1: dashboard.port: 70000 is outside 1\u201365535"),
        (
            "actors: {Watcher: {maxRestarts: -2}}\n",
            ":1: actors.Watcher.maxRestarts: -2 is less than -1",
        ),
        (
            "cluster: {objectStoreMiB: 8}\n",
            ":1: cluster.objectStoreMiB: 8 is less than 80",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_line_and_what_would_be_right(
    tmp_path: Path, text: str, complaint: str
):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)

    assert str(caught.value) == f"{tmp_path / RAY_CONFIG_NAME}{complaint}"


def test_every_problem_of_a_file_is_a_line(tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "embedder: {workers: many}\ndashboard: {enabled: maybe, port: 0}\n")

    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == [
        "dashboard.enabled",
        "dashboard.port",
        "embedder.workers",
    ]


@pytest.mark.parametrize(("cores", "workers"), [(None, 1), (2, 2), (64, MAX_DEFAULT_WORKERS)])
def test_without_a_number_there_is_a_worker_per_core_up_to_a_limit(monkeypatch, cores, workers):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)

    assert EmbedderOptions().num_workers() == workers
