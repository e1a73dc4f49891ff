"""A daemon without Ray and without an index: what a host starts in the place of the real one.

``python fake_child.py DATA SOCKET_FOLDER [ready|stubborn|wrong|broken|silent]``
"""

import asyncio
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

from actors.control import ControlServer
from actors.hosting import received_config, tied_to_host
from memory.data_lock import data_lock
from memory.supervision import UNUSABLE


async def serve(data, folder, mode, config):
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)

    async def status(_request):
        return {"ready": True}

    async def context(request):
        if mode == "silent":
            await asyncio.Event().wait()
        return {"section": f"# {request['prompt']} {config}", "rows": [], "degraded": ""}

    server = ControlServer(folder, data, {"status": status, "context": context})
    await server.start()
    with contextlib.suppress(BrokenPipeError):  # the host is gone; as the real console does
        sys.stdout.write("serving\n")
        sys.stdout.flush()
    await stopping.wait()
    if mode == "stubborn":
        await asyncio.Event().wait()
    (data / "saved").touch()
    await server.stop()


def main():
    data, folder, mode = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    config = received_config()
    if mode in ("wrong", "broken"):
        sys.stdout.write("memory: no such model\n")
        return UNUSABLE if mode == "wrong" else 1
    with tied_to_host() if mode != "stubborn" else contextlib.nullcontext(), data_lock(data):
        # As Ray does: a process that outlives its parent, in a process group of its own.
        subprocess.Popen(["sleep", "1000"], process_group=0)
        asyncio.run(serve(data, folder, mode, config))
    return 0


if __name__ == "__main__":
    sys.exit(main())
