"""Says whether a question asks for something to be shown, and which tools do so."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.catalogue.words import words_of

# The first words of a question that asks for something to be shown.
_ASKING = """
what which who whom whose where when how why is are was were does do did has have had will whats hows
"""
ASKING = frozenset(_ASKING.split())
# Behind a first word, these ask for help with doing something, as in "how can I close an issue".
HELPING = frozenset(("can", "could", "should", "would", "may", "i", "we"))
ASKING_ANYWAY = frozenset(("who", "which", "whose"))
_WRITING = """
create add new make insert open register set put update edit change modify rename delete remove erase drop send post
write publish run start execute trigger stop close cancel move copy duplicate upload invite assign enable disable
approve reply merge schedule book share archive restore mark save submit push apply attach grant revoke clear purge
lock unlock mute pin reset import transfer convert complete resolve batch bulk replace append generate
"""
# The stems of words in the names of tools that change something.
WRITING = frozenset(words_of(_WRITING))
_READING = """
list get show find fetch read view search lookup retrieve query display browse describe check inspect compare count
status info whoami explain analyze history current validate recent
"""
# The stems of words in the names of tools that only show something.
READING = frozenset(words_of(_READING))


def asks_to_read(words: Sequence[str]) -> bool:
    """Returns whether a question in these words asks for something to be shown, as in "who can open this file"."""
    if not words or words[0] not in ASKING:
        return False
    return words[0] in ASKING_ANYWAY or HELPING.isdisjoint(words[1:3])
