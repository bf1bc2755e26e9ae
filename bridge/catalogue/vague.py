"""Words that say little about which tool is wanted."""

from __future__ import annotations

from bridge.catalogue.words import words_of

# Verbs with too many meanings, amounts, times, names of people and places, and other words that are in any question.
_VAGUE = """
make made making take took taken taking get got gets getting give gave given giving put puts putting go goes going gone
went come came comes coming keep kept let lets letting say says said tell told know known think mean means look looks
see seen saw seem bring brought turn turned have having happen happened happens try tried work works working ask asked
want wanted belong belongs stand standing sit leave left become became begin began start started
thing things stuff way ways kind sort bit lot lots piece part parts side place point matter case example whole rest
people person man woman guy wife husband boss mother father brother sister friend friends kid kids child children
colleague colleagues neighbour somebody team company customer customers office home house room
one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred hundreds thousand
thousands million first second third half double couple several many much more most less least few little enough
today tomorrow yesterday tonight morning afternoon evening night noon midnight now then later soon ago before after
until since while during time times day days week weeks month months year years hour hours minute minutes moment
monday tuesday wednesday thursday friday saturday sunday weekend
january february march april june july august september october november december spring summer autumn winter
new old good bad better best big small large long short high low nice great right wrong same different certain own
again still already yet ever never always often sometimes only just even also almost nearly really very quite rather
back away up down out off over under between within without around through behind above below again together alone
able possible must instead because whether although though however both either neither each every such like unlike
next last recent current actual
peter anna tom jane maria john paul mary bob alice max eva lisa michael thomas sarah david anne emma james robert linda
london berlin paris rome madrid vienna munich hamburg lisbon athens oslo milan prague zurich tokyo york chicago boston
dublin amsterdam barcelona stockholm copenhagen brussels lyon sydney germany france italy spain england america europe
"""
# Their stems.
VAGUE = frozenset(words_of(_VAGUE))
