"""A server that speaks OpenAI's embedding protocol and takes the same time for each request.

Run as a process of its own; prints its port once it listens, and ends when its input is closed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys

import numpy as np
from aiohttp import web

DIM = 384
_VALUES = np.random.default_rng(3).normal(size=DIM).astype(np.float32)
_ENCODED = {
    "base64": json.dumps(base64.b64encode(_VALUES.tobytes()).decode()),
    "float": json.dumps(_VALUES.tolist()),
}


def application(latency_s: float) -> web.Application:
    """Returns the server; all vectors are the same."""

    async def embeddings(request: web.Request) -> web.Response:
        asked = await request.json()
        await asyncio.sleep(latency_s)
        vector = _ENCODED[asked.get("encoding_format", "float")]
        # Put together from text, because numbers would take longer than all the rest.
        number = len(asked["input"])
        data = ",".join(
            f'{{"object": "embedding", "index": {index}, "embedding": {vector}}}'
            for index in range(number)
        )
        rest = {"object": "list", "model": asked["model"], "usage": {"total_tokens": number}}
        text = f'{json.dumps(rest)[:-1]}, "data": [{data}]}}'
        return web.Response(text=text, content_type="application/json")

    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/embeddings", embeddings)
    return app


async def main(latency_s: float) -> None:
    runner = web.AppRunner(application(latency_s), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
