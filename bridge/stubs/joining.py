"""Joins schemas to one, and compares them by their JSON texts.

A schema may be met many times, so its text is made once, and counts as work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bridge.stubs.in_words import compact_json
from bridge.stubs.subschemas import Schema
from bridge.stubs.work import Work

# Keywords that say nothing about an object's members.
NOTES = frozenset(
    {"description", "title", "default", "examples", "deprecated", "readOnly", "writeOnly", "$defs", "definitions"}
)


@dataclass(slots=True)
class SchemaJoiner:
    """Joins the schemas of one tool. What is known of a schema is kept by its id, with the schema itself, so that no
    other schema gets the id.
    """

    work: Work
    where: str
    _texts: dict[int, tuple[Any, str]] = field(default_factory=dict)
    _bare_texts: dict[int, tuple[Any, str]] = field(default_factory=dict)
    _joined: dict[tuple[int, str], tuple[Any, Schema]] = field(default_factory=dict)

    def text(self, value: Any) -> str:
        """Returns the JSON text of a schema, or of a keyword's value."""
        if id(value) not in self._texts:
            self._texts[id(value)] = value, self._write(value)
        return self._texts[id(value)][1]

    def bare_text(self, schema: Schema) -> str:
        """Returns the JSON text of a schema without its notes."""
        if id(schema) not in self._bare_texts:
            bare = {key: value for key, value in schema.items() if key not in NOTES}
            self._bare_texts[id(schema)] = schema, self._write(bare)
        return self._bare_texts[id(schema)][1]

    def is_same(self, one: Any, other: Any) -> bool:
        return one is other or self.text(one) == self.text(other)

    def join(self, schemas: list[Any], keyword: str = "allOf") -> Schema:
        """Returns one schema for several. `keyword`: "allOf" if a value must fit each, "anyOf" if it must fit one."""
        only: Schema = schemas[0] if schemas else {}
        if any(schema is not only for schema in schemas):
            return self._join(schemas, keyword)
        if list(only) != [keyword]:
            return only
        if (id(only), keyword) not in self._joined:
            self._joined[id(only), keyword] = only, self._join([only], keyword)
        return self._joined[id(only), keyword][1]

    def _join(self, schemas: list[Any], keyword: str) -> Schema:
        found: dict[str, Schema] = {}
        for schema in schemas:
            parts = schema[keyword] if list(schema) == [keyword] else [schema]
            self.work.spend(len(parts), self.where)
            for part in parts:
                found.setdefault(self.text(part), part)
        if keyword == "allOf":
            found.pop("{}", None)
        unique = list(found.values())
        return unique[0] if len(unique) == 1 else {keyword: unique} if unique else {}

    def _write(self, value: Any) -> str:
        text = compact_json(value)
        self.work.spend_text(text, self.where)
        return text
