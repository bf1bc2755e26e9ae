"""Splits texts and the names of tools into words, and cuts the endings of English words, so that "issues" is "issue".

The words are made for comparing, not for showing: the stem of "issue" and "issues" is "issu".
"""

from __future__ import annotations

import re
import unicodedata

# Longer words are data, such as Base64.
LONGEST_WORD = 40
# Of a run of Chinese or Japanese, so many characters are looked at: each has a word of its own.
LONGEST_RUN = 20
# All ASCII characters but letters and digits end a token. `_spaced` looks at other characters.
_ENDS = bytes(byte if byte >= 128 or chr(byte).isalnum() else ord(" ") for byte in range(256))
_PARTS = re.compile(
    r"(?<=[a-z])(?=[A-Z])"  # create|Issue
    r"|(?<=[A-Z])(?=[A-Z][a-z])(?!.s(?![a-z]))"  # HTTP|Server, but not PRs
    r"|(?<=[A-Za-z]{3})(?=\d)"  # oauth|2, but not s3
    r"|(?<=\d)(?=[A-Z][a-z]|[A-Za-z]{3})"  # 64|encode, but not 2fa
)
# Chinese and Japanese have no spaces: their words are taken to be all pairs of neighbouring characters.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
_ACCENTS = re.compile(r"[\u0300-\u036f]+")
# The last letters of the endings that are cut: "s", "es", "ies", "ied", "ed", "ing", "er" and "e".
_LAST_OF_ENDINGS = "sdgre"
_VOWEL = re.compile(r"[aeiouy]")
# Three letters that a verb has before a final "e": "filing" is a form of "file".
_SHORT_WITHOUT_E = re.compile(r"[^aeiou][aeiou][^aeiouwxy]\Z")
# "planning" is a form of "plan".
_DOUBLED = re.compile(r"([bdfgmnprtv])\1\Z")


def words_of(text: str) -> list[str]:
    """Returns the stems of the words in a text, or of the parts of a tool's name, in their order."""
    return [*map(stem, split_words(text))]


def split_words(text: str) -> list[str]:
    """Returns the words in a text, or the parts of a tool's name, in lower case and without accents."""
    return [word for token in tokens_of(text) for word in parts_of(token)]


class WordSplitter(dict[bytes, list[str]]):
    """Splits many names faster than `split_words`: it remembers the words of each token, and words are shared."""

    def __missing__(self, token: bytes) -> list[str]:
        words = self[token] = parts_of(token)
        return words

    def split(self, text: str) -> list[str]:
        return [word for token in tokens_of(text) for word in self[token]]


def tokens_of(text: str) -> list[bytes]:
    """Returns the runs of letters and digits, as UTF-8. A name in camelCase is one token."""
    return text.encode(errors="replace").translate(_ENDS).split()


def parts_of(token: bytes) -> list[str]:
    """Returns the words in one token, in lower case and without accents. A token that is too long has no words."""
    text = token.decode()
    if len(text) <= LONGEST_WORD and text.isascii() and text.isalpha() and text[1:].islower():
        return [text.lower()]
    if len(text) > 4 * LONGEST_WORD:
        return []
    parts = _PARTS.split(text)
    if not text.isascii():
        parts = [word for part in parts for word in _spaced(part).split()]
    return [_without_capitals(part) for part in parts if len(part) <= LONGEST_WORD]


def _without_capitals(part: str) -> str:
    is_plural = len(part) > 2 and part.endswith("s") and part[:-1].isupper()  # PRs
    return part[:-1].lower() if is_plural else part.lower()


def _spaced(text: str) -> str:
    """Returns the text with a space between two words, without accents and signs."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    plain = unicodedata.normalize("NFC", plain)[: 4 * LONGEST_WORD]  # one sign may stand for a dozen letters
    letters = "".join(one if unicodedata.category(one)[0] in "LMN" else " " for one in plain)
    return _UNSPACED.sub(_pairs, letters)


def _pairs(match: re.Match[str]) -> str:
    run = match[0][:LONGEST_RUN]
    pairs = " ".join(map(str.__add__, run, run[1:]))
    return f" {pairs or run} "


def stem(word: str) -> str:
    """Returns an English word without its ending, so that forms of one word become equal. Other words may change, too,
    but always in the same way.
    """
    if len(word) < 4 or word[-1] not in _LAST_OF_ENDINGS or not word.isascii():
        return word
    if word[-1] == "s":
        word = _without_plural(word)
    if word[-1] in "dgr":
        word = _without_verb_ending(word)
    return word[:-1] if word[-1] == "e" and len(word) > 4 else word


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses")):
        return word[:-2]
    return word if word.endswith(("ss", "us", "is")) else word[:-1]


def _without_verb_ending(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("ing"):
        return _repaired(word, word[:-3])
    if word.endswith("ed") and not word.endswith("eed"):
        return _repaired(word, word[:-2])
    if word.endswith("er") and len(word) > 7 and word[-3] not in "tm":
        return word[:-2]
    return word


def _repaired(word: str, rest: str) -> str:
    """Returns what is left of a word as the verb is written alone, or the word if the rest is not a verb."""
    if len(rest) < 3 or not _VOWEL.search(rest):
        return word
    if len(rest) > 3 and _DOUBLED.search(rest):
        return rest[:-1]
    return rest + "e" if len(rest) == 3 and _SHORT_WITHOUT_E.match(rest) else rest
