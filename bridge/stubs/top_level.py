"""Turns the schema of all arguments of a client's tool into a schema of one object with properties.

OpenAI and Letta refuse alternatives at the top level of this schema. Letta also fails at every message to an agent with
a tool that lacks `properties` or `required`. What the one object can't express is said in words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bridge.errors import InvalidRequest
from bridge.stubs.in_words import compact_json
from bridge.stubs.joining import NOTES
from bridge.stubs.normalise import declared_types
from bridge.stubs.parts import SAID_IN_WORDS, Merged, PartReader
from bridge.stubs.subschemas import ALTERNATIVES, Schema, is_impossible

# OpenAI refuses these keywords beside the properties.
_NOT_AT_THE_TOP = ("not", "enum", "const")
# How many lists of alternatives are read for one list at the top.
MAX_SEARCHED = 200
_SAYS_NOTHING_ELSE = NOTES | {*ALTERNATIVES, "$ref", "allOf"}


@dataclass(slots=True)
class TopLevel:
    """The schema of all arguments, and `sentences` for the tool's description about what the schema can't express.
    `quoted` are schemas that the arguments must fit, too, for another such sentence. `has_open_form`: one of several
    forms of the arguments allows members that are not named.
    """

    schema: Schema
    sentences: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    quoted: list[Schema] = field(default_factory=list)
    has_open_form: bool = False


def make_top_level(parameters: Schema, reader: PartReader) -> TopLevel:
    """Returns the schema as one object, into which references, `allOf` and alternatives at the top are merged."""
    merged = reader.merge(reader.parts_of(parameters))
    top = TopLevel(schema=merged.rest, quoted=merged.quoted)
    if "object" not in (declared_types(top.schema) or ["object"]):
        raise InvalidRequest(
            f"`{reader.where}.type` is {compact_json(top.schema['type'])}; the parameters of a tool must be of type "
            "object.",
            param=f"{reader.where}.type",
        )
    for keyword, members in merged.alternatives:
        _describe_forms(top, merged, keyword, _read_forms(members, reader), reader)
    _add_undeclared(merged)
    reader.apply_rules_for_other_names(merged)
    if merged.quoted:
        top.changes.append("What parts of allOf say beyond their properties is said in the tool's description.")
    moved = {key: top.schema.pop(key) for key in _NOT_AT_THE_TOP if key in top.schema}
    if moved:
        top.quoted.insert(0, moved)
        top.changes.append(f"{', '.join(moved)} at the top of the schema is said in the tool's description.")
    _describe_missing(top, reader)
    properties = {name: reader.joiner.join(schemas) for name, schemas in merged.names.items()}
    shape = {"type": "object", "properties": properties, "required": merged.required}
    top.schema = {**shape, **top.schema, "type": "object"}
    return top


def _add_undeclared(merged: Merged) -> None:
    """Adds the names that are required and not declared, which `unevaluatedProperties` no longer reaches then."""
    rule = merged.rest.get("unevaluatedProperties", True)
    undeclared = [name for name in merged.required if name not in merged.names]
    if undeclared and rule not in (True, {}):
        merged.quoted.append({"properties": {name: {} for name in merged.names}, "additionalProperties": rule})
    merged.names |= {name: [] for name in undeclared}


def _describe_missing(top: TopLevel, reader: PartReader) -> None:
    for reference in reader.missing:
        top.changes.append(f"The reference {reference!r} leads nowhere in the client's schema: any arguments will do.")
        top.sentences.append(f"The client does not describe the arguments for which it refers to {reference}.")


# --- alternatives -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Forms:
    """The forms that a list of alternatives allows; `is_cut` if there are more."""

    found: list[Merged] = field(default_factory=list)
    is_cut: bool = False


def _read_forms(members: list[Any], reader: PartReader) -> _Forms:
    """Returns the forms without alternatives that together mean `members`. A list of alternatives inside itself adds
    nothing, so its member is left out; ids of lists, so that circles end.
    """
    forms, searched = _Forms(), 0
    waiting: list[tuple[list[Schema], list[list[Any]], frozenset[int]]] = [([], [members], frozenset())]
    while waiting and searched < MAX_SEARCHED:
        parts, lists, around = waiting.pop()
        reader.work.spend(1 + len(parts), reader.where)
        if not lists:
            form = reader.merge(parts)
            reader.apply_rules_for_other_names(form)
            if not form.is_impossible:
                forms.found.append(form)
            continue
        searched += 1
        around |= {id(lists[0])}
        # Members that lead to the same schema have the same list of parts.
        for own in reversed({id(found): found for found in map(reader.parts_of, lists[0])}.values()):
            reader.work.spend(1 + len(parts) + len(own), reader.where)
            inner = [part[key] for part in own for key in ALTERNATIVES if key in part]
            if not around & set(map(id, inner)):
                said = [part for part in own if part.keys() - _SAYS_NOTHING_ELSE]
                waiting.append(([*parts, *said], [*inner, *lists[1:]], around))
    forms.is_cut = bool(waiting)
    return forms


def _describe_forms(top: TopLevel, merged: Merged, keyword: str, forms: _Forms, reader: PartReader) -> None:
    """Replaces alternatives by a sentence. All their properties stay; required are those that every one requires."""
    if not forms.found:
        top.quoted.append({"not": {}})
        top.changes.append(f"{keyword} at the top of the schema can't be met.")
        return
    in_forms = _schemas_by_name(forms, reader)
    different = {name for name, schemas in in_forms.items() if len(set(map(reader.joiner.bare_text, schemas))) > 1}
    for name, schemas in in_forms.items():
        if name not in merged.names:
            merged.names[name] = [reader.joiner.join(schemas, "anyOf")]
        elif len(schemas) == len(forms.found) and not forms.is_cut:
            merged.names[name].append(reader.joiner.join(schemas, "anyOf"))
        else:
            different.add(name)
    common = set.intersection(*(set(form.required) for form in forms.found)) if not forms.is_cut else set()
    merged.required = list(dict.fromkeys([*merged.required, *(n for n in forms.found[0].required if n in common)]))
    shapes = dict.fromkeys(_form_text(form, merged, different, reader) for form in forms.found)
    end = "; or in others" if forms.is_cut else ""
    top.sentences.append(f"The arguments come in one of these forms ('?': may be left out): {'; '.join(shapes)}{end}.")
    top.changes.append(f"{keyword} at the top of the schema is said in the tool's description.")
    top.has_open_form = top.has_open_form or forms.is_cut or any(_allows_others(form.rest) for form in forms.found)


def _schemas_by_name(forms: _Forms, reader: PartReader) -> dict[str, list[Schema]]:
    """Returns the schemas that a property may fit, in the forms that name it or have a schema for all other names."""
    found: dict[str, list[Schema]] = {name: [] for form in forms.found for name in [*form.names, *form.required]}
    for form in forms.found:
        rule = form.rest.get("additionalProperties")
        is_for_others = isinstance(rule, dict) and not form.rest.get("patternProperties")
        names = found if is_for_others else form.names
        reader.work.spend(len(names), reader.where)
        for name in names:
            found[name].append(reader.joiner.join(form.names.get(name, [rule])))
    return found


def _allows_others(schema: Schema) -> bool:
    """Whether a schema expressly allows members that are not named in `properties`."""
    return bool(schema.get("patternProperties")) or schema.get("additionalProperties", False) is not False


def _form_text(form: Merged, around: Merged, different: set[str], reader: PartReader) -> str:
    """Returns an alternative as the model reads it, such as `{kind: "file", path, mode?}`. Required names are first."""
    names = sorted({*form.names, *form.required}, key=lambda name: (name not in form.required, name))
    texts = [_argument_text(name, form, different, reader) for name in names]
    text = "{" + ", ".join(texts) + "}"
    says = {key: value for key, value in form.rest.items() if key in SAID_IN_WORDS}
    if says.get("additionalProperties") is False and not says.get("patternProperties"):
        del says["additionalProperties"]
        text += " and no others" if around.names.keys() - form.names.keys() else ""
    elif says.get("additionalProperties") is True:
        del says["additionalProperties"]
        text += " and any others"
    quoted = [*([says] if says else []), *form.quoted]
    text += "".join(f" fitting the JSON Schema {compact_json(one)}" for one in quoted)
    reader.work.spend_text(text, reader.where)
    return text


def _argument_text(name: str, form: Merged, different: set[str], reader: PartReader) -> str:
    """Returns a name with what only this form says of the value."""
    schema = reader.joiner.join(form.names.get(name, []))
    if is_impossible(schema):
        return f"no {name}"
    value = ""
    if "const" in schema:
        value = reader.joiner.text(schema["const"])
    elif name in different and "$ref" not in reader.joiner.bare_text(schema):
        value = reader.joiner.bare_text(schema)  # the property itself shows what a reference leads to
    return name + ("" if name in form.required else "?") + (f": {value}" if value not in ("", "{}") else "")
