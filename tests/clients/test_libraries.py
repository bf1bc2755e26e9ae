"""Agents of LangChain, pydantic-ai and the Vercel AI SDK read a file and answer with its content."""

from __future__ import annotations

import pytest

from tests.clients.process import Scratch
from tests.clients.reading import check_that_it_reads
from tests.real.world import Agent

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


@pytest.mark.parametrize("how", ["whole", "stream"])
@pytest.mark.parametrize("program", ["langchain_agent", "pydantic_ai_agent", "vercel_ai"])
def test_the_library_reads_a_file_and_answers_with_its_word(
    agent: Agent, scratch: Scratch, program: str, how: str
) -> None:
    check_that_it_reads(program, how, agent, scratch)
