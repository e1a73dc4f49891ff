"""A server that speaks OpenAI's embedding protocol and takes the same time for each request.

Run as a process of its own; prints its port once it listens, and ends when its input is closed.
"""

from __future__ import annotations

import asyncio
import base64
import sys

import numpy as np
from aiohttp import web

DIM = 384
_VALUES = np.random.default_rng(3).normal(size=DIM).astype(np.float32)
_ENCODED = {"base64": base64.b64encode(_VALUES.tobytes()).decode(), "float": _VALUES.tolist()}


def application(latency_s: float) -> web.Application:
    """Returns the server; all vectors are the same."""

    async def embeddings(request: web.Request) -> web.Response:
        asked = await request.json()
        await asyncio.sleep(latency_s)
        vector = _ENCODED[asked.get("encoding_format", "float")]
        data = [
            {"object": "embedding", "index": number, "embedding": vector}
            for number in range(len(asked["input"]))
        ]
        usage = {"prompt_tokens": len(data), "total_tokens": len(data)}
        return web.json_response(
            {"object": "list", "model": asked["model"], "data": data, "usage": usage}
        )

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
