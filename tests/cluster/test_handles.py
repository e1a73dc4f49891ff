"""A program of its own finds the actors by their names and asks them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import ray

from actors.cluster import namespace_of

if TYPE_CHECKING:
    from actors.ray_config import RayConfig
    from tests.cluster.running import Running

pytestmark = pytest.mark.cluster

JOINING = """
import json, os, sys
import ray
address, namespace, question = sys.argv[1:]
ray.init(address=address, namespace=namespace, log_to_driver=False, configure_logging=False)
names = [each["name"] for each in ray.util.list_named_actors(all_namespaces=True)
         if each["namespace"] == namespace]
handles = {name: ray.get_actor(name) for name in names}
pids = {name: ray.get(handle.ping.remote(), timeout=20) for name, handle in handles.items()}
result = ray.get(handles["ContextProvider"].search.remote(question, 3), timeout=20)
section = ray.get(handles["ContextProvider"].section.remote(question), timeout=20)
json.dump({
    "pids": pids,
    "paths": [hit.path for hit in result.hits],
    "degraded": result.degraded,
    "section": section.text,
    "own": os.getpid(),
}, sys.stdout)
"""


def test_another_driver_reaches_every_actor_by_name_and_searches(
    running: Running, ray_config: RayConfig
) -> None:
    running.write("wiki/bikes.md", "# Bob\n\nBob repairs bicycles.\n")
    running.wait_until_equal()

    joined = subprocess.run(
        [
            sys.executable,
            "-c",
            JOINING,
            ray.get_runtime_context().gcs_address,
            namespace_of(ray_config, running.locations.data),
            "who repairs bicycles",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert joined.returncode == 0, joined.stderr
    answer = json.loads(joined.stdout)
    assert answer["pids"] == running.pids()
    assert answer["own"] not in answer["pids"].values()
    assert answer["paths"][0] == "wiki/bikes.md"
    assert answer["degraded"] == ""
    assert "wiki/bikes.md" in answer["section"]
    assert running.pids() == answer["pids"], "the actors live on when the other driver has left"
