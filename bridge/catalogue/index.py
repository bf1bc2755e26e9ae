"""Says in which tools a word occurs, and in which field of them.

A tool is known by its place in the client's list.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import chain, islice
from sys import getsizeof
from typing import Any

from bridge.catalogue.groups import LONGEST_NAME, Groups
from bridge.catalogue.words import parts_of, stem, tokens_of
from bridge.turn import JsonObject, ToolSpec

# Characters that are looked at: of a description's first sentence, of the rest of it, of the text about one parameter,
# and of the texts about all parameters. More characters find hardly any tool, and make the index slow.
LONGEST_HEADLINE = 300
LONGEST_DETAILS = 200
LONGEST_REMARK = 40
LONGEST_REMARKS = 120
# Schemas within a tool's schema that are looked at, and values of each choice.
MOST_SCHEMAS = 100
MOST_CHOICES = 50
# After so many letters of different words, only the names of further tools are read. 5,000 usual tools have a tenth.
MOST_LETTERS = 400_000
_COMMON = """
a an the this that these those it its i my me we us our you your he she they their them is are was be been am
do does did done can could may might must shall should will would want wants need needs like please help have has
had to of in on at for from by with into onto out about via as and or if then so than too also not no how whom
whose why when where any all some here there just now right use used uses using tool tools function functions
somebody someone anybody anyone everybody everyone something anything everything other others
s t m re ve ll d don
"""
# These words are in most texts and tell nothing of a tool.
COMMON_WORDS = frozenset(_COMMON.split())
_END_OF_SENTENCE = re.compile(r"[.!?](?=\s)|\n\s*\n")


class Field(IntEnum):
    """The parts of a tool, the most important one first. SERVICE: the words of the name that are its group's. HEADLINE:
    the first sentence of the description. TEXT: the rest of the description, and the texts about the parameters.
    """

    SERVICE = 0
    NAME = 1
    HEADLINE = 2
    PARAMETERS = 3
    TEXT = 4


class _Stems(dict[bytes, str]):
    """The stem of each token, "" for a common word. A token of several parts has the stems of its parts, with spaces,
    and that of the whole token, because people write "GitHub" as one word.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self.letters = 0

    def __missing__(self, token: bytes) -> str:
        words = parts_of(token)
        if len(words) > 1:
            words.append("".join(words))
        stems = " ".join([stem(word) for word in words if word not in COMMON_WORDS])
        # The same stem is the same object, so that two need not be compared letter by letter.
        found = self[token] = self._known.setdefault(stems, stems)
        self.letters += len(stems)
        return found

    def of(self, text: str) -> set[str]:
        return {*map(self.__getitem__, tokens_of(text))}


class _NamedStems(dict[str, frozenset[str]]):
    """The stems in the name of each parameter, because many tools have the same ones."""

    def __init__(self, stems: _Stems) -> None:
        self._stems = stems

    def __missing__(self, name: str) -> frozenset[str]:
        found = self[name] = frozenset(self._stems.of(name[:LONGEST_NAME]))
        return found

    def of(self, names: Iterable[str]) -> set[str]:
        return set().union(*map(self.__getitem__, names))


class Index:
    """The words of tools, by their stems. `written`: the stem of each word in a name, by the word as it is written
    there.
    """

    def __init__(self, specs: Sequence[ToolSpec], groups: Groups) -> None:
        self._groups = groups
        self.written = {word: stem(word) for word in dict.fromkeys(chain.from_iterable(groups.words))}
        fields: list[defaultdict[str, list[int]]] = [defaultdict(list) for _ in Field]
        for place, found in enumerate(self._read_fields(specs)):
            for field, words in zip(fields, found, strict=True):
                for word in words:
                    field[word].append(place)
        self._fields = [*map(_with_parts, fields)]
        self._add_groups()

    @cached_property
    def size(self) -> int:
        """About how many bytes of memory the words take. A word of several fields is counted for each of them."""
        words = dict.fromkeys(chain.from_iterable(self._groups.words))
        size = sum(map(getsizeof, (words, *words, *self._groups.words, self.written, *self.written.values())))
        for field in self._fields:
            size += getsizeof(field) + sum(map(getsizeof, field)) + sum(map(getsizeof, field.values()))
        return size

    def stems_in_name(self, place: int) -> list[str]:
        return [self.written[word] for word in self._groups.words[place]]

    def places(self, word: str, field: Field) -> Sequence[int]:
        """Returns the places of the tools that have the stem in this field."""
        return self._fields[field].get(word, ())

    def has(self, word: str, field: Field) -> bool:
        return word in self._fields[field]

    def knows(self, word: str) -> bool:
        return any(word in field for field in self._fields)

    def words(self, *fields: Field) -> list[str]:
        """Returns the stems that occur in one of the fields, in alphabetical order."""
        return sorted({word for field in fields for word in self._fields[field]})

    def _add_groups(self) -> None:
        """Adds the groups that have several words as one word: people write "googlecalendar", too."""
        for group in self._groups.all:
            if group.key not in self.written:
                word = self.written[group.key] = stem(group.key)
                self._fields[Field.SERVICE].setdefault(word, []).extend(group.places)

    def _read_fields(self, specs: Sequence[ToolSpec]) -> Iterator[tuple[set[str], ...]]:
        stems = _Stems()
        named = _NamedStems(stems)
        for place, spec in enumerate(specs):
            name, prefix = self.stems_in_name(place), self._groups.prefixes[place]
            if stems.letters > MOST_LETTERS:
                yield {*name[:prefix]}, {*name[prefix:]}, set(), set(), set()
                continue
            headline = first_sentence(spec.description)
            parameters, texts = _read_schema(spec.parameters)
            details = spec.description[len(headline) : len(headline) + LONGEST_DETAILS]
            text = f"{details} {' '.join(texts)[:LONGEST_REMARKS]}"
            yield {*name[:prefix]}, {*name[prefix:]}, stems.of(headline), named.of(parameters), stems.of(text)


def _with_parts(field: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Returns the places of each single stem. Keys with several stems are taken apart."""
    found = {word: places for word, places in field.items() if word and " " not in word}
    added: defaultdict[str, set[int]] = defaultdict(set)
    for words in sorted(field.keys() - found.keys()):
        for word in words.split():
            added[word].update(field[words])
    for word, places in added.items():
        found[word] = [*places.union(found.get(word, ()))]
    return found


def first_sentence(text: str) -> str:
    """Returns the beginning of a description up to its first full stop or line break, or its first characters."""
    match = _END_OF_SENTENCE.search(text, 0, LONGEST_HEADLINE)
    return text[: match.end() if match else LONGEST_HEADLINE]


def _read_schema(parameters: JsonObject | None) -> tuple[list[str], list[str]]:
    """Returns the names of a tool's parameters, and all other texts in their schema."""
    properties = parameters.get("properties") if parameters else None
    if not isinstance(properties, dict):
        return [], []
    texts: list[str] = []
    schemas: list[Any] = [*islice(properties.values(), MOST_SCHEMAS)]
    for schema in schemas:
        if isinstance(schema, dict) and len(schemas) <= MOST_SCHEMAS:
            _read_texts(schema, texts, schemas)
    return [*islice(properties, MOST_SCHEMAS)], texts


def _read_texts(schema: dict[str, Any], texts: list[str], schemas: list[Any]) -> None:
    """Adds the texts of one schema to the texts, and the schemas within it to the schemas."""
    for key, value in schema.items():
        if isinstance(value, str):
            if key in ("description", "const"):
                texts.append(value[:LONGEST_REMARK])
        elif key == "enum" and isinstance(value, list):
            texts += [one for one in value[:MOST_CHOICES] if isinstance(one, str)]
        elif key == "properties" and isinstance(value, dict):
            texts += value
            schemas += value.values()
        elif key in ("items", "additionalProperties"):
            schemas.append(value)
        elif key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
            schemas += value
