"""The README's examples against real servers: the scripted model reads their lines with `!`."""

from __future__ import annotations

import pytest

from testbed.demo import AGENTS
from testbed.versions import agent_types
from tests.readme import examples, printed_by, promised
from tests.real.world import World

pytestmark = [pytest.mark.real, pytest.mark.two_servers]


def test_the_examples_print_what_they_say(world: World) -> None:
    """The agents have the newest type and the oldest one of the server, in place of those of `make run`."""
    world.model.clear()
    types = agent_types(world.version)
    program = examples().replace("http://localhost:8080", world.bridge.url)
    made = [world.agent(agent_type) for agent_type in (types[-1], types[0])]
    for name, agent in zip(AGENTS, made, strict=True):
        assert name in program
        program = program.replace(name, agent.name)
    first, *others = printed_by(program)
    assert "Hello!" in first
    assert others == promised()
    for agent in made:
        agent.delete()
    assert not world.model.refusals
