"""A program of Letta's own API gets through the bridge what it gets from Letta, byte for byte.

The same session is sent to Letta and through the bridge, each with an agent and objects of its own. Only their ids and
times differ. What the bridge filters is listed.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from testbed.agents import embedding_config
from tests.real.talk import WEATHER, Talk, ask_weather
from tests.real.toolsets import is_ours
from tests.real.world import Agent, Reply, World

pytestmark = [pytest.mark.real, pytest.mark.one_type]

KEY = "key-of-test"
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
NO_AGENT = f"agent-{uuid.UUID(int=5)}"
CALL_ID = "call_[0-9a-f]{24}"
# Each way in which Letta writes a time; measured numbers; and numbers of tokens, of which ids have more or fewer.
CHANGING_VALUES = re.compile(
    r'\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?: [AP]M \w+[+-]\d+|Z|[+-]\d\d:\d\d)?|(?<=_[mn]s":)\d+'
    r'|(?<="num_tokens_messages":)\d+|(?<="context_window_size_current":)\d+'
    r'|(?<="prompt_tokens":)\d+|(?<="total_tokens":)\d+'  # of a prompt with the time in it
)


@dataclass(frozen=True, slots=True)
class Step:
    """A request of the session. Names in braces are ids of earlier answers; `keeps` names that of its own answer."""

    verb: str
    path: str
    body: Any = None
    keeps: str = ""
    files: Mapping[str, Any] | None = None


READING = [
    Step("GET", "/v1/health/"),
    Step("GET", "/v1/models/"),
    Step("GET", "/v1/agents/{agent}/core-memory"),
    Step("GET", "/v1/agents/{agent}/core-memory/blocks"),
    Step("GET", "/v1/agents/{agent}/core-memory/blocks/human"),
    Step("GET", "/v1/agents/{agent}/archival-memory?limit=5"),
    Step("GET", "/v1/agents/{agent}/sources"),
    Step("GET", "/v1/blocks/?limit=3"),
    # Errors, in Letta's own words.
    Step("GET", f"/v1/agents/{NO_AGENT}/core-memory"),
    Step("GET", "/v1/agents/not-an-id"),
    Step("GET", "/v1/agents/{agent}/core-memory/blocks/none"),
    Step("GET", "/v1/agents/{agent}/messages?limit=many"),
    Step("GET", "/v1/blocks/block-of-nobody"),
    Step("GET", "/v1/no-such-path"),
    Step("DELETE", "/v1/health/"),
    Step("POST", "/v1/blocks/", {"label": 5}),
    Step("PATCH", "/v1/agents/{agent}/core-memory/blocks/human", {"value": {}}),
]
AGENT = [
    Step("GET", "/v1/agents/?limit=1&name={name}"),
    Step("GET", "/v1/agents/{agent}"),
    Step("GET", "/v1/agents/{agent}/tools"),
    Step("GET", "/v1/agents/{agent}/context"),
    Step("GET", "/v1/agents/{agent}/messages?limit=20"),
]
CHANGING = [
    Step("POST", "/v1/blocks/", {"label": "notes", "value": "Tea.", "limit": 500}, keeps="block"),
    Step("PATCH", "/v1/blocks/{block}", {"value": "Coffee."}),
    Step("PATCH", "/v1/agents/{agent}/core-memory/blocks/human", {"value": "Likes café \U0001f600."}),
    Step("PATCH", "/v1/agents/{agent}", {"description": "Helps.", "tags": ["one", "two"]}),
    Step("POST", "/v1/agents/{agent}/archival-memory", {"text": "The sea is cold."}, keeps="passage"),
    Step("GET", "/v1/agents/{agent}/archival-memory"),
    Step("GET", "/v1/agents/{agent}/archival-memory/search?query=sea"),
    Step("POST", "/v1/agents/{agent}/messages", {"messages": [{"role": "user", "content": "Hello\n!say Good."}]}),
    Step("POST", "/v1/agents/{agent}/messages/stream", {"messages": [{"role": "user", "content": "Hi\n!say Well."}]}),
    Step("POST", "/v1/agents/{agent}/messages", {"messages": [{"role": "nobody", "content": 5}]}),
    *AGENT,
    Step("POST", "/v1/sources/", {"name": "{name}", "embedding_config": "{embedding}"}, keeps="source"),
    Step("POST", "/v1/sources/{source}/upload", files={"file": ("notes.txt", b"The word is milk.\n", "text/plain")}),
    Step("POST", "/v1/sources/{source}/upload", files={"file": ("notes.bin", bytes(range(256)), "x-odd/type")}),
    Step("DELETE", "/v1/sources/{source}"),
    Step("DELETE", "/v1/blocks/{block}"),
    Step("GET", "/v1/blocks/{block}"),
]


@dataclass
class Program:
    """A program at one address. It knows the ids of its answers by name."""

    url: str
    agent: Agent
    known: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        embedding = embedding_config(self.agent.world.model.url)
        self.known |= {"agent": self.agent.id, "name": self.agent.name, "embedding": embedding}

    def does(self, step: Step) -> requests.Response:
        path, body = step.path.format(**self.known), step.body
        if isinstance(body, dict):
            body = {name: self._filled_in(value) for name, value in body.items()}
        answer = requests.request(
            step.verb,
            self.url + path,
            json=body,
            files=step.files,
            headers={"Authorization": f"Bearer {KEY}"},
            timeout=60,
            allow_redirects=False,
        )
        if step.keeps:
            found = answer.json()
            made = found[0] if isinstance(found, list) else found
            self.known[step.keeps] = made.get("id", "not-made")  # some versions have no such path, or fail at it
        return answer

    def _filled_in(self, value: Any) -> Any:
        return self.known[value[1:-1]] if isinstance(value, str) and re.fullmatch(r"\{\w+\}", value) else value

    def session(self, steps: list[Step]) -> list[tuple[str, int, str | None, str]]:
        """Returns request, status, type and body of each answer, with numbers in place of ids and without times."""
        ids: dict[str, str] = {self.agent.name: "NAME"}

        def number(found: re.Match[str]) -> str:
            return ids.setdefault(found[0], f"ID {len(ids)}")

        answers = []
        for step in steps:
            answer = self.does(step)
            text = re.sub(f"{UUID}|{CALL_ID}|{re.escape(self.agent.name)}", number, answer.content.decode())
            kind = answer.headers.get("Content-Type")
            answers.append((f"{step.verb} {step.path}", answer.status_code, kind, _unchanging(text)))
        return answers


def _unchanging(text: str) -> str:
    return CHANGING_VALUES.sub("CHANGING", text)


Programs = Callable[[Agent, Agent], tuple[Program, Program]]


@pytest.fixture(scope="module")
def programs(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """Makes a program that talks to Letta, and one that talks to the bridge. A bridge without keys takes no uploads."""
    data = str(tmp_path_factory.mktemp("data"))
    with world.start_bridge(BRIDGE_DATA_DIR=data, BRIDGE_API_KEYS=KEY, BRIDGE_ALLOW_ANONYMOUS="0") as bridge:
        yield lambda one, other: (Program(world.server.base_url, one), Program(f"{bridge.url}/letta", other))


def open_call(agent: Agent) -> Reply:
    """Leaves a call of a client's tool open, and its stub attached where the bridge makes one."""
    return Talk(agent, WEATHER).say(ask_weather())


def both_answers(programs: tuple[Program, Program], step: Step) -> tuple[requests.Response, requests.Response]:
    """Returns Letta's answer and the bridge's. Letta notes the end of a run some time after its reply; asks again if it
    did so meanwhile.
    """
    direct, through = programs
    for _ in range(10):
        before, found, after = direct.does(step), through.does(step), direct.does(step)
        if _unchanging(before.text) == _unchanging(after.text):
            break
    return after, found


@pytest.mark.two_servers
def test_a_session_that_only_reads_gets_the_same_bytes(agent: Agent, programs: Programs) -> None:
    """These reads show nothing of the open call and its stub."""
    open_call(agent)
    for step in READING:
        expected, found = both_answers(programs(agent, agent), step)
        assert (found.status_code, found.content) == (expected.status_code, expected.content), step
        assert found.headers.get("Content-Type") == expected.headers.get("Content-Type"), step


@pytest.mark.two_servers
def test_a_session_that_changes_an_agent_gets_the_same_but_for_ids_and_times(
    world: World, agent_type: str, programs: Programs
) -> None:
    agents = world.agent(agent_type), world.agent(agent_type)
    expected, found = (program.session(CHANGING) for program in programs(*agents))
    for mine, letta in zip(found, expected, strict=True):
        assert mine == letta
    assert {200, 404, 422} <= {status for _, status, _, _ in found}
    for agent in agents:
        agent.delete()


@pytest.mark.two_servers
def test_only_these_answers_are_filtered(agent: Agent, programs: Programs) -> None:
    """Where the server has client tools of its own, there is no stub, and only the ids of calls are the bridge's."""
    opened = open_call(agent)
    own_tools = [tool["name"] for tool in agent.state()["tools"] if not is_ours(tool)]
    steps = [*AGENT, Step("GET", "/v1/tools/?limit=1000")]
    direct, through = zip(*(both_answers(programs(agent, agent), step) for step in steps), strict=True)
    assert all(answer.status_code == 200 for answer in [*direct, *through])
    pairs = zip(steps, direct, through, strict=True)
    filtered = [step.path for step, expected, found in pairs if _unchanging(found.text) != _unchanging(expected.text)]
    messages, tools = AGENT[-1].path, steps[-1].path
    assert [path for path in filtered if path != tools] == [
        step.path for step in AGENT if opened.method != "native" or step.path == messages
    ]
    assert through[-1].json() == [tool for tool in direct[-1].json() if not is_ours(tool)]

    (listed,), shown, own, context, rows, _ = (answer.json() for answer in through)
    assert [[tool["name"] for tool in tools] for tools in (listed["tools"], shown["tools"], own)] == [own_tools] * 3
    assert "weather" not in str([shown["tool_rules"], listed["tool_rules"], context["functions_definitions"]])
    (request,) = [row for row in rows if row["message_type"] == "approval_request_message"]
    assert [call["tool_call_id"] for call in request["tool_calls"]] == opened.call_ids
    assert request["tool_call"]["name"] == "weather"
    newest = programs(agent, agent)[1].does(Step("GET", "/v1/agents/{agent}/messages?limit=1&order=desc")).json()
    assert {row["id"] for row in newest} == {request["id"]}  # one message, which may also have a thought
    assert request["message_type"] in [row["message_type"] for row in newest]
    counts = [program.does(Step("GET", "/v1/tools/count")).json() for program in programs(agent, agent)]
    stubs = [tool for tool in direct[-1].json() if is_ours(tool)]
    assert counts[0] - counts[1] == len(stubs) or not isinstance(counts[0], int)


@pytest.mark.two_servers
def test_a_key_for_one_agent_finds_it_behind_others(
    world: World, agent_type: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Newer agents come first, and fill Letta's own page."""
    mine, *others = (world.agent(agent_type) for _ in range(3))
    limited = f"me:{hashlib.sha256(KEY.encode()).hexdigest()}:{mine.name}:letta=agents"
    data = str(tmp_path_factory.mktemp("data"))
    with world.start_bridge(BRIDGE_DATA_DIR=data, BRIDGE_API_KEYS=limited, BRIDGE_ALLOW_ANONYMOUS="0") as bridge:
        program = Program(f"{bridge.url}/letta", mine)
        for query in ("limit=1", "limit=2&ascending=true", "limit=2&order=asc"):
            listed = program.does(Step("GET", f"/v1/agents/?{query}")).json()
            assert [agent["id"] for agent in listed] == [mine.id], query
    for agent in (mine, *others):
        agent.delete()
