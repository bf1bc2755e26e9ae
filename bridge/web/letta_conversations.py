"""Answers requests about conversations that the bridge made, and passes on those about Letta's own."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import replace

from flask import Response, g, jsonify, request

from bridge.dialects.letta.request import DEFAULT_CONVERSATION, Place
from bridge.errors import InvalidRequest
from bridge.letta.capabilities import agent_loop
from bridge.letta.gateway import AGENT_ID, ForeignCall
from bridge.passthrough.calls import agent_of
from bridge.passthrough.conversations import agent_of_conversation, conversation_object, new_conversation_id
from bridge.passthrough.views import LONGEST_ANSWER
from bridge.turn import JsonObject
from bridge.web.letta_messages import LettaMessages
from bridge.web.letta_requests import LettaRequests, speaker_in


class LettaConversations:
    """Answers the requests. A conversation of the bridge is another name of its agent's one history."""

    def __init__(self, requests: LettaRequests, messages: LettaMessages) -> None:
        self._requests = requests
        self._messages = messages
        self._parts = requests.parts

    def begin_conversation(self, agent_id: str) -> Response:
        self._requests.check_visible(agent_id)
        self._parts.gateway.agent(agent_id)
        made = new_conversation_id(agent_id, time.time())
        return jsonify(conversation_object(made, ()))

    def show_conversation(self, conversation_id: str) -> Response:
        agent_id = self._agent_of(conversation_id)
        if not agent_id:
            return self._requests.pass_on()
        ids = self._parts.views.context_ids(agent_id, speaker_in(f"letta:{conversation_id}"))
        return jsonify(conversation_object(conversation_id, ids))

    def list_conversation(self, conversation_id: str) -> Response:
        agent_id = self._agent_of(conversation_id)
        if not agent_id:
            return self._requests.pass_on()
        speaker = speaker_in(f"letta:{conversation_id}")
        call = replace(self._requests.call_of_request(), path=f"/v1/agents/{agent_id}/messages")
        with ExitStack() as until_sent:
            self._parts.answers.enter_passed_on(g.client_key, until_sent, only_reads=True)
            answer = self._parts.gateway.forward(call)
            view = self._parts.views
            return self._requests.respond(
                answer, lambda value: view.conversation_messages(agent_id, speaker, value), until_sent
            )

    def message_conversation(self, conversation_id: str) -> Response:
        if conversation_id == DEFAULT_CONVERSATION:
            return self._messages.answer_message(lambda body: Place(str(body.get("agent_id")), streams=True))
        if agent_of(f"/v1/agents/{conversation_id}"):  # Letta's older name of an agent's default conversation
            return self._messages.answer_message(lambda _: Place(conversation_id, streams=True))
        agent_id = self._agent_of(conversation_id)
        if not agent_id:
            return self._message_conversation_of_letta()
        return self._messages.answer_message(lambda _: Place(agent_id, conversation_id, streams=True))

    def _message_conversation_of_letta(self) -> Response:
        """Passes a message to a conversation of Letta's own on, while its agent is held."""
        parts, path = self._parts, self._requests.call_of_request().path.removesuffix("/").removesuffix("/messages")
        self._requests.check_right(ForeignCall("GET", path))
        found = parts.gateway.forward(ForeignCall("GET", path))
        agent_id = _agent_in(found.read(LONGEST_ANSWER))
        if not agent_id:
            return self._requests.pass_on()
        with ExitStack() as until_sent:
            slot = parts.answers.enter(g.client_key, until_sent)
            body, sent = parts.answers.bodies.read_with_bytes(request, until_sent, slot.until_free)
            self._check_client_tools(body, agent_id)
            return self._messages.pass_on_while_held(
                Place(agent_id, path), self._requests.call_of_request(sent), body, until_sent
            )

    def _check_client_tools(self, body: JsonObject, agent_id: str) -> None:
        """Raises InvalidRequest for client tools that Letta would pass over. It takes them for letta_v1_agent only, and
        the bridge can't send others: a conversation of Letta's own has a context of its own.
        """
        gateway = self._parts.gateway
        if not body.get("client_tools"):
            return
        agent = gateway.agent(agent_id)
        if agent_loop(gateway.features().version, agent.type) != "v3":
            raise InvalidRequest(
                f"Letta takes no `client_tools` for a {agent.type} in a conversation of its own. Send the message to"
                " the agent, or to a conversation that was made through the bridge.",
                param="client_tools",
            )

    def cancel_conversation(self, conversation_id: str) -> Response:
        agent_id = self._agent_of(conversation_id)
        if not agent_id:
            return self._requests.pass_on()
        return self._requests.forward(
            replace(self._requests.call_of_request(), path=f"/v1/agents/{agent_id}/messages/cancel", query="")
        )

    def _agent_of(self, conversation_id: str) -> str:
        """Returns the agent of a conversation that the bridge made, "" for one of Letta's own."""
        agent_id = agent_of_conversation(conversation_id)
        if agent_id:
            self._requests.check_visible(agent_id)
        return agent_id


def _agent_in(conversation: bytes) -> str:
    """Returns the id of the agent that Letta names in its answer about a conversation, "" if it names none."""
    try:
        value = json.loads(conversation)
    except ValueError:
        return ""
    agent_id = value.get("agent_id") if isinstance(value, dict) else None
    return agent_id if isinstance(agent_id, str) and AGENT_ID.fullmatch(agent_id) else ""
