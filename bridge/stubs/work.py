"""Limits the work on the tools of one request, before anything waits for it.

A small schema can ask for much work: alternatives, references and `allOf` can lead to the same large schema many times.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.errors import InvalidRequest

# How many schemas and properties are read for all tools of a request, each as often as its tool leads to it. Five
# hundred tools with a hundred properties each come to two thirds of this. All of it takes a second or two.
MAX_WORK = 150_000
# How many characters of JSON are written in the time in which one schema is read.
_CHARACTERS = 100


@dataclass(slots=True)
class Work:
    """Counts the schemas and properties that were read. `spend` refuses the tool whose schema goes beyond the limit."""

    spent: int = 0

    def spend(self, units: int, where: str) -> None:
        self.spent += units
        if self.spent > MAX_WORK:
            raise InvalidRequest(
                f"`{where}` asks for too much work: with the tools before it, it leads to more than {MAX_WORK} schemas"
                " and properties, counted each time that alternatives, references or allOf lead to them. Send fewer"
                " tools, or a schema with fewer parts and alternatives.",
                param=where,
                code="tools_too_complex",
            )

    def spend_text(self, text: str, where: str) -> None:
        """Counts the work of writing a schema's JSON text."""
        self.spend(len(text) // _CHARACTERS, where)
