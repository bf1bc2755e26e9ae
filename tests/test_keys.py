from __future__ import annotations

import hashlib

import pytest

from bridge.keys import ApiKey, parse_api_keys

DIGEST = "ab" * 32


def test_of_a_plain_key_only_the_hash_is_kept() -> None:
    (key,) = parse_api_keys("a key".replace(" ", "-of-mine-"))
    assert key == ApiKey("key-1", hashlib.sha256(b"a-of-mine-key").hexdigest())


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"roo:{DIGEST}", ApiKey("roo", DIGEST)),
        (f"roo:{DIGEST.upper()}", ApiKey("roo", DIGEST)),
        (f"roo:{DIGEST}:", ApiKey("roo", DIGEST)),
        (f"roo:{DIGEST}:*", ApiKey("roo", DIGEST)),
        (f"roo:{DIGEST}:Ada", ApiKey("roo", DIGEST, frozenset({"Ada"}))),
        (f"roo:{DIGEST}:Ada%20Lovelace|a%2Cb%3A%7C", ApiKey("roo", DIGEST, frozenset({"Ada Lovelace", "a,b:|"}))),
        (f"roo:{DIGEST}::rate=60;turns=4", ApiKey("roo", DIGEST, rate=60, turns=4)),
        (f"roo:{DIGEST}::search=40", ApiKey("roo", DIGEST, search=40)),
        (f"roo:{DIGEST}::chats=each", ApiKey("roo", DIGEST, chats="each")),
        (f"roo:{DIGEST}::chats=each+main;rate=1", ApiKey("roo", DIGEST, rate=1, chats="each+main")),
        (f"roo:{DIGEST}::rate=0", ApiKey("roo", DIGEST, rate=0)),
        (f"roo:{DIGEST}::letta=off", ApiKey("roo", DIGEST, letta="off")),
        (f"roo:{DIGEST}:Ada:turns=4;letta=agents", ApiKey("roo", DIGEST, frozenset({"Ada"}), turns=4, letta="agents")),
        (f"roo:{DIGEST}::letta=all", ApiKey("roo", DIGEST, letta="all")),
        (
            f"roo:{DIGEST}:Ada:methods=prompt|native",
            ApiKey("roo", DIGEST, frozenset({"Ada"}), frozenset({"prompt", "native"})),
        ),
    ],
)
def test_a_key_is_read_with_its_agents_and_options(text: str, key: ApiKey) -> None:
    assert parse_api_keys(text) == (key,)


def test_keys_are_separated_by_commas_or_blanks() -> None:
    assert [key.name for key in parse_api_keys(f"roo:{DIGEST}:Ada:rate=1,  cli:{DIGEST}\nplain-key-of-mine")] == [
        "roo",
        "cli",
        "key-3",
    ]


@pytest.mark.parametrize(
    "item",
    ["roo:canary-secret", "roo:canary", "roo:", "roo:canary-secret:Ada:rate=1", "roo:c\u00e4nary", "sk:a:canary"],
)
def test_a_name_with_a_plain_key_is_refused_with_the_commands_that_make_an_entry(item: str) -> None:
    with pytest.raises(ValueError, match="key 2 looks like a name and a plain key") as caught:
        parse_api_keys(f"plain-key-of-mine,{item}")
    assert "`keys new NAME`" in str(caught.value)
    assert "`keys hash NAME`" in str(caught.value)
    assert "nary" not in str(caught.value)


def test_a_plain_key_with_a_colon_that_follows_no_name_is_a_plain_key() -> None:
    assert [key.name for key in parse_api_keys("my+key:of-mine :my-own-key")] == ["key-1", "key-2"]


@pytest.mark.parametrize("text", [f"plain-key-of-mine,key-1:{DIGEST}", f"key-2:{DIGEST} plain-key-of-mine"])
def test_a_named_key_cannot_have_the_name_of_a_plain_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"has the name 'key-\d', which a plain key has by its place") as caught:
        parse_api_keys(text)
    assert "plain-key-of-mine" not in str(caught.value)


def test_two_keys_may_belong_to_one_client() -> None:
    names = [key.name for key in parse_api_keys(f"key-7:{DIGEST},key-7:{'cd' * 32},plain-key-of-mine")]
    assert names == ["key-7", "key-7", "key-3"]


OPTIONS = "options are rate=60;turns=4;methods=native|relay;search=40;chats=each;letta=agents"
NUMBER = "that is invalid: it must be a whole number, as in"
METHODS = "`methods` that is invalid: it must be one of approval, message, native, prompt, relay, rewrite, or several"
CHATS = "`chats` that is invalid: it must be one of one, each, each+main, as in chats=each"
RIGHTS = "`letta` that is invalid: it must be one of off, agents, all, as in letta=agents"


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("canary", "key 2 is shorter than 8 characters: the command `keys new NAME` makes a key"),
        (
            "can\u00e4ry-key",
            "key 2 has characters that a header cannot carry: use letters without accents, digits and signs",
        ),
        ("roo:canary-secret", "key 2 looks like a name and a plain key: after `name:` comes the SHA-256 of the key"),
        (
            f"roo:{DIGEST[:-1]}",
            "key 2 (roo) has 63 hex digits after its name, and a SHA-256 has 64: copy the whole hash",
        ),
        (
            f"roo:{DIGEST}0:Ada",
            "key 2 (roo) has 65 hex digits after its name, and a SHA-256 has 64: copy the whole hash",
        ),
        (
            f"roo:{DIGEST}:a:b:c:d",
            "key 2 (roo) has 6 parts with `:` between, and `name:sha256[:agents[:options]]` has 4",
        ),
        (f"roo:{DIGEST}:|", "key 2 (roo) lists agents, but names none between its `|`: for all agents, write `*`"),
        (f"roo:{DIGEST}:||", "key 2 (roo) lists agents, but names none between its `|`: for all agents, write `*`"),
        (f"key-1:{DIGEST}", "key 2 has the name 'key-1', which a plain key has by its place: rename it"),
        (f"roo:{DIGEST}::x=1", f"key 2 (roo) has an unknown option; {OPTIONS}"),
        (f"roo:{DIGEST}::canary", f"key 2 (roo) has an unknown option; {OPTIONS}"),
        (
            f"roo:{DIGEST}::search=513",
            "key 2 (roo) has an option `search` that is invalid: it must be a whole number up to 512",
        ),
        (f"roo:{DIGEST}::rate", f"key 2 (roo) has an option `rate` {NUMBER} rate=60"),
        (f"roo:{DIGEST}::rate=", f"key 2 (roo) has an option `rate` {NUMBER} rate=60"),
        (f"roo:{DIGEST}::rate=canary", f"key 2 (roo) has an option `rate` {NUMBER} rate=60"),
        (f"roo:{DIGEST}::rate=-1", f"key 2 (roo) has an option `rate` {NUMBER} rate=60"),
        (f"roo:{DIGEST}::rate=1;turns=1e3", f"key 2 (roo) has an option `turns` {NUMBER} turns=4"),
        (f"roo:{DIGEST}::methods=", f"key 2 (roo) has an option {METHODS}"),
        (f"roo:{DIGEST}::methods=best", f"key 2 (roo) has an option {METHODS}"),
        (f"roo:{DIGEST}::chats", f"key 2 (roo) has an option {CHATS}"),
        (f"roo:{DIGEST}::chats=all", f"key 2 (roo) has an option {CHATS}"),
        (f"roo:{DIGEST}::letta", f"key 2 (roo) has an option {RIGHTS}"),
        (f"roo:{DIGEST}::letta=ALL", f"key 2 (roo) has an option {RIGHTS}"),
    ],
)
def test_a_wrong_key_is_refused_by_its_place_and_name_and_never_shown(item: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^key 2 ") as caught:
        parse_api_keys(f"plain-key-of-mine,{item}")
    assert str(caught.value).startswith(message)
    assert not [
        secret for secret in ("canary", DIGEST, DIGEST[:-1], "plain-key-of-mine") if secret in str(caught.value)
    ]
