"""A memory starts on the index of another model, and loses its keeper on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from actors import system
from memory.index_folders import PREVIOUS_NAME, identity_in
from tests.cluster.running import Running, eventually
from tests.doubles import HashEmbedder
from tests.unit.successions import FILES, indexed

if TYPE_CHECKING:
    from actors.ray_config import RayConfig
    from memory.config import Settings
    from memory.locations import Locations

pytestmark = pytest.mark.cluster


def test_the_index_of_another_model_answers_until_the_new_one_takes_over(
    cluster: None, settings: Settings, locations: Locations, ray_config: RayConfig
) -> None:
    """SPEC E5: also across a kill of the keeper."""
    indexed(locations.data, HashEmbedder(8))
    for path, texts in FILES.items():
        sections = (f"## Section {number}\n\n{text}\n" for number, text in enumerate(texts))
        (locations.workspace / path).write_text("# Fruit\n\n" + "\n".join(sections))
    memory = Running(system.start(settings, locations, ray_config), settings, locations)
    try:
        first = eventually(
            lambda: memory.get(memory.system.provider.search.remote("plums", 3)).hits
        )
        memory.kill("IndexKeeper")
        memory.wait_until_equal()
        last = memory.get(memory.system.provider.search.remote("plums", 3))
    finally:
        memory.end()

    assert (first[0].path, last.hits[0].path) == ("b.md", "b.md")
    assert last.degraded == ""
    assert identity_in(locations.data / PREVIOUS_NAME).model == "hash-8"
