"""Runs the mock Letta: `python -m bench.mock --port 8283 --version 0.16.1`."""

from __future__ import annotations

import argparse
import asyncio
import gc

from bench.mock.letta import MockLetta
from bench.mock.wire import MockConnection


async def main(port: int, version: str) -> None:
    letta = MockLetta(version)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: MockConnection(letta.serve), "127.0.0.1", port, backlog=1024)
    gc.disable()
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    parser = argparse.ArgumentParser(prog="python -m bench.mock")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--version", default="0.16.1")
    chosen = parser.parse_args()
    uvloop.run(main(chosen.port, chosen.version))
