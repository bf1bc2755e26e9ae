"""The schemas of the Responses API: what a request may have, and what a response and its events have."""

from __future__ import annotations

from bridge.dialects.responses.parameters import PARAMETERS
from bridge.web.openapi.parts import (
    ANY_OBJECT,
    FLAG,
    NULL,
    NUMBER_OR_NULL,
    OBJECT_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    WHOLE_NUMBER,
    WHOLE_NUMBER_OR_NULL,
    Schema,
    all_of_object,
    array_of,
    described,
    object_of,
    reference,
    with_treatments,
)

_CHOICE = {"anyOf": [{"enum": ["none", "auto", "required"]}, ANY_OBJECT]}
_REQUEST = object_of(
    "model",
    "input",
    model={**TEXT, "minLength": 1},
    input={"anyOf": [TEXT, {**array_of(ANY_OBJECT), "minItems": 1}]},
    instructions=TEXT_OR_NULL,
    stream=FLAG,
    store=FLAG,
    previous_response_id=TEXT_OR_NULL,
    conversation={"anyOf": [TEXT_OR_NULL, object_of("id", id=TEXT)]},
    tools=array_of(object_of("type", type=TEXT, name=TEXT, description=TEXT, parameters=ANY_OBJECT)),
    tool_choice=_CHOICE,
    parallel_tool_calls=FLAG,
    text={"type": "object", "properties": {"format": ANY_OBJECT}},
    **dict.fromkeys(("temperature", "top_p"), NUMBER_OR_NULL),
    **dict.fromkeys(("max_output_tokens", "max_tool_calls"), WHOLE_NUMBER_OR_NULL),
    **dict.fromkeys(("user", "truncation", "service_tier", "prompt_cache_key", "safety_identifier"), TEXT_OR_NULL),
    metadata=OBJECT_OR_NULL,
    reasoning=OBJECT_OR_NULL,
)
_STATUS = {"enum": ["in_progress", "completed", "incomplete"]}
_TEXT_PART = all_of_object(
    type={"const": "output_text"}, text=TEXT, annotations=array_of(ANY_OBJECT), logprobs=array_of(ANY_OBJECT)
)
_SUMMARY_PART = all_of_object(type={"const": "summary_text"}, text=TEXT)
_ITEM = {
    "oneOf": [
        all_of_object(
            type={"const": "message"},
            id=TEXT,
            status=_STATUS,
            role={"const": "assistant"},
            content=array_of(reference("TextPart")),
        ),
        all_of_object(
            type=described({"const": "reasoning"}, "The agent's thoughts."),
            id=TEXT,
            status=_STATUS,
            summary=array_of(reference("SummaryPart")),
        ),
        object_of(
            *("type", "id", "status", "call_id", "name", "arguments"),
            type={"const": "function_call"},
            id=TEXT,
            status=_STATUS,
            call_id=TEXT,
            name=TEXT,
            namespace=TEXT,
            arguments=described(TEXT, "JSON, in the form of the client's own schema."),
        ),
        object_of(
            *("type", "id", "call_id", "name", "input"),
            type={"const": "custom_tool_call"},
            id=TEXT,
            call_id=TEXT,
            name=TEXT,
            namespace=TEXT,
            input=described(TEXT, "Free text."),
        ),
    ]
}
_USAGE = all_of_object(
    input_tokens=described(WHOLE_NUMBER, "The size of the agent's last prompt."),
    input_tokens_details=all_of_object(cached_tokens=WHOLE_NUMBER, cache_write_tokens=WHOLE_NUMBER),
    output_tokens=WHOLE_NUMBER,
    output_tokens_details=all_of_object(reasoning_tokens=WHOLE_NUMBER),
    total_tokens=WHOLE_NUMBER,
)
# Fields of the request that a response repeats as they were sent, or with what OpenAI's API has in their place.
_REPEATED: dict[str, Schema] = {
    "instructions": TEXT_OR_NULL,
    "max_output_tokens": WHOLE_NUMBER_OR_NULL,
    "max_tool_calls": WHOLE_NUMBER_OR_NULL,
    "metadata": ANY_OBJECT,
    "parallel_tool_calls": FLAG,
    "previous_response_id": TEXT_OR_NULL,
    "prompt_cache_key": TEXT_OR_NULL,
    "safety_identifier": TEXT_OR_NULL,
    "service_tier": TEXT,
    "store": FLAG,
    "temperature": {"type": "number"},
    "text": ANY_OBJECT,
    "tool_choice": _CHOICE,
    "top_logprobs": WHOLE_NUMBER,
    "top_p": {"type": "number"},
    "presence_penalty": {"type": "number"},
    "frequency_penalty": {"type": "number"},
    "truncation": TEXT,
    "user": TEXT_OR_NULL,
    "model": TEXT,
    "reasoning": ANY_OBJECT,
    "tools": array_of(ANY_OBJECT),
}
_ANSWERED: dict[str, Schema] = {
    "id": described(TEXT, "For `previous_response_id`, and to read the response again."),
    "object": {"const": "response"},
    "created_at": described(WHOLE_NUMBER, "Unix time."),
    "completed_at": described(WHOLE_NUMBER_OR_NULL, "Unix time."),
    "status": {"enum": ["in_progress", "completed", "incomplete", "failed"]},
    "background": {"const": False},
    "error": {"anyOf": [all_of_object(code=TEXT, message=TEXT), NULL]},
    "incomplete_details": {"anyOf": [all_of_object(reason=TEXT), NULL]},
    "output": array_of(reference("ResponseItem")),
    "usage": {"anyOf": [_USAGE, NULL]},
}
_RESPONSE = object_of(*_ANSWERED, *_REPEATED, **_ANSWERED, **_REPEATED, conversation=all_of_object(id=TEXT))
_OF_THE_RESPONSE = [f"response.{state}" for state in ("created", "in_progress", "completed", "incomplete", "failed")]
_OF_AN_ITEM = ["response.output_item.added", "response.output_item.done"]
_OF_A_PART = [
    f"response.{part}.{what}" for part in ("content_part", "reasoning_summary_part") for what in ("added", "done")
]
_OF_TEXT = [
    f"response.{text}.{what}"
    for text in ("output_text", "reasoning_summary_text", "function_call_arguments", "custom_tool_call_input")
    for what in ("delta", "done")
]
_NUMBERED = {"sequence_number": WHOLE_NUMBER}
_PLACE = {"item_id": TEXT, "output_index": WHOLE_NUMBER}
_EVENT = {
    "oneOf": [
        all_of_object(type={"enum": _OF_THE_RESPONSE}, **_NUMBERED, response=reference("Response")),
        all_of_object(
            type={"enum": _OF_AN_ITEM}, **_NUMBERED, output_index=WHOLE_NUMBER, item=reference("ResponseItem")
        ),
        object_of(
            *("type", *_NUMBERED, *_PLACE, "part"),
            type={"enum": _OF_A_PART},
            **_NUMBERED,
            **_PLACE,
            content_index=WHOLE_NUMBER,
            summary_index=WHOLE_NUMBER,
            part={"oneOf": [reference("TextPart"), reference("SummaryPart")]},
        ),
        object_of(
            *("type", *_NUMBERED, *_PLACE),
            type={"enum": _OF_TEXT},
            **_NUMBERED,
            **_PLACE,
            content_index=WHOLE_NUMBER,
            summary_index=WHOLE_NUMBER,
            delta=described(TEXT, "The next piece, in an event that ends with `delta`."),
            **dict.fromkeys(
                ("text", "arguments", "input"), described(TEXT, "The whole, in one that ends with `done`.")
            ),
            logprobs=array_of(ANY_OBJECT),
        ),
    ]
}
_PAGE = all_of_object(
    object={"const": "list"},
    data=array_of({**object_of("id", "type", id=TEXT, type=TEXT), "additionalProperties": True}),
    first_id=TEXT_OR_NULL,
    last_id=TEXT_OR_NULL,
    has_more=FLAG,
)
SCHEMAS: dict[str, Schema] = {
    "ResponseRequest": with_treatments(_REQUEST, PARAMETERS),
    "Response": _RESPONSE,
    "ResponseItem": _ITEM,
    "TextPart": _TEXT_PART,
    "SummaryPart": _SUMMARY_PART,
    "ResponseEvent": _EVENT,
    "DeletedResponse": all_of_object(id=TEXT, object={"const": "response"}, deleted={"const": True}),
    "InputItems": _PAGE,
}
