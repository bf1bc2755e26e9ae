"""Makes a Turn from the JSON of a request to the Responses API. Raises InvalidRequest, which names the wrong field."""

from __future__ import annotations

from dataclasses import replace

from bridge.dialects.base import RequestRules
from bridge.dialects.openai.parameters import parse_cache_key, parse_flag, parse_model
from bridge.dialects.openai.side_requests import find_side_rule
from bridge.dialects.openai.turn_fields import transcript_fields
from bridge.dialects.responses.ids import turn_of_response
from bridge.dialects.responses.items import added_tools, input_items, read_transcript
from bridge.dialects.responses.parameters import check_parameters, conversation_name, parse_reply_format
from bridge.dialects.responses.tools import OfferedTools, parse_choice, parse_offered_tools
from bridge.errors import InvalidRequest
from bridge.turn import ASIDE_SUFFIX, JsonObject, Message, Turn


def parse_request(body: JsonObject, rules: RequestRules, *, aside: bool = False) -> tuple[Turn, OfferedTools]:
    """Returns the turn that a request asks for, and its tools as the client knows them. It is aside (kept out of the
    agent's memory) by `aside`, by a `model` that ends with `:aside`, or by a side rule.
    """
    model = parse_model(body)
    check_parameters(body)
    follows = _parse_turn_before(body)
    items = input_items(body)
    tools = parse_offered_tools(body, added_tools(items), rules.most_tools)
    choice, offered = parse_choice(body, tools)
    transcript = read_transcript(body, items, tools, rules)
    has_tools = bool(offered.by_spec_name)
    aside = aside or model.endswith(ASIDE_SUFFIX)
    if not aside and find_side_rule(transcript, has_tools, rules.side_rules) is None:
        transcript = _without_broken_answer(transcript)
    fields = transcript_fields(
        transcript, rules.side_rules, aside=aside, has_tools=has_tools, reply_format=parse_reply_format(body)
    )
    if follows and fields["aside"]:
        raise InvalidRequest(
            "`previous_response_id` can't be used in a request aside: send the whole conversation as `input`.",
            param="previous_response_id",
        )
    if follows:
        fields["new_input"] = replace(fields["new_input"], opens_conversation=False)
    turn = Turn(
        model=model.removesuffix(ASIDE_SUFFIX),
        tools=offered.specs,
        tool_choice=choice,
        parallel_tool_calls=body.get("parallel_tool_calls") is None or parse_flag(body, "parallel_tool_calls"),
        stream=parse_flag(body, "stream"),
        session=conversation_name(body),
        cache_key=parse_cache_key(body),
        follows=follows,
        is_named=True,
        **fields,
    )
    return turn, tools


def _without_broken_answer(transcript: list[Message]) -> list[Message]:
    """Returns the transcript without an answer at its end. When a stream fails, Codex sends its request again with the
    items of the answer that had come until then: the agent is asked for the whole answer, as by the first request.
    """
    is_broken = bool(transcript) and transcript[-1].role == "assistant" and not transcript[-1].tool_calls
    return transcript[:-1] if is_broken else transcript


def _parse_turn_before(body: JsonObject) -> str:
    """Returns the id of the turn whose response the request names as the one before, "" if it names none."""
    given = body.get("previous_response_id")
    if not given:
        return ""
    turn_id = turn_of_response(given)
    if turn_id is None:
        raise InvalidRequest(
            f"There is no response with the id {given!r:.100}. Leave `previous_response_id` out, and send the whole"
            " conversation as `input`.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    return turn_id
