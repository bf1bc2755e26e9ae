from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from bridge.config import FORMER_VARIABLES, OTHER_VARIABLES, complete_environment, read_settings, variable_rows
from bridge.errors import SettingsError
from bridge.keys import ApiKey

LEAST = {"LETTA_BASE_URL": "http://localhost:8283", "BRIDGE_ALLOW_ANONYMOUS": "1"}
DIGEST = hashlib.sha256(b"a-long-enough-key").hexdigest()

BAD = [
    ("LETTA_BASE_URL", "localhost:8283", "must be a URL"),
    ("LETTA_BASE_URL", "ftp://localhost", "must be a URL"),
    ("LETTA_BASE_URL", "http://", "must be a URL"),
    ("LETTA_BASE_URL", "http://:8283", "must be a URL"),
    ("LETTA_BASE_URL", "http://letta:port", "must be a URL"),
    ("LETTA_BASE_URL", "http://letta:99999", "must be a URL"),
    ("LETTA_BASE_URL", "http://[", "must be a URL"),
    ("LETTA_BASE_URL", "http://letta/?a=b", "without query"),
    ("LETTA_BASE_URL", "http://letta/#top", "without query"),
    ("LETTA_BASE_URL", "http://le tta", "must be a URL"),
    ("LETTA_API_KEY", "caf\u00e9", "its value has characters that a header cannot carry"),
    ("LETTA_API_KEY", "a b", "its value has characters that a header cannot carry"),
    ("BRIDGE_FILES", "/no/such/folder", "must be a folder"),
    ("BRIDGE_FILES", "tests/cases", "may hold `tools` and `side_requests.json`, and has "),
    ("BRIDGE_URL_PREFIX", "bridge", "must be a path such as /bridge"),
    ("BRIDGE_URL_PREFIX", "/a b", "must be a path such as /bridge"),
    ("BRIDGE_URL_PREFIX", "//evil", "must be a path such as /bridge"),
    ("BRIDGE_KEEP_TEXT", "some", "must be 1 or 0"),
    ("PORT", "http", "whole number from 0 to 65535"),
    ("PORT", "65536", "whole number from 0 to 65535"),
    ("PORT", "-1", "whole number from 0 to 65535"),
    ("PORT", "8080.0", "whole number"),
    ("WEB_CONCURRENCY", "0", "whole number from 1 to 64"),
    ("WEB_CONCURRENCY", "65", "whole number from 1 to 64"),
    ("BRIDGE_API_KEYS", "short", "key 1 is shorter than 8 characters"),
    ("BRIDGE_API_KEYS", "a-long-enough-key,short", "key 2 is shorter than 8 characters"),
    ("BRIDGE_API_KEYS", "cl\u00e9-secr\u00e8te", "key 1 has characters that a header cannot carry: use letters"),
    ("BRIDGE_API_KEYS", "roo:" + "ab" * 31, "key 1 (roo) has 62 hex digits after its name, and a SHA-256 has 64"),
    ("BRIDGE_API_KEYS", "roo:secretsecret", "key 1 looks like a name and a plain key: after `name:` comes the SHA-256"),
    ("BRIDGE_ALLOW_ANONYMOUS", "maybe", "must be 1 or 0"),
    ("BRIDGE_METHOD", "best", "must be one of auto, native, approval, rewrite, relay, prompt, message"),
    ("BRIDGE_METHOD", "auto, Ada=best", "must be one of auto, native"),
    ("BRIDGE_CHATS", "all", "must be one of one, each, each+main"),
    ("BRIDGE_CHATS", "one, Ada=all", "must be one of one, each, each+main"),
    ("BRIDGE_CHATS", "each, ", "must be one of one, each, each+main"),
    ("BRIDGE_SYSTEM_PROMPT", "drop", "must be one of block, message, ignore"),
    ("BRIDGE_METRICS_TOKEN", "a b", "has characters that a header cannot carry"),
    ("BRIDGE_API_KEYS", "roo:" + "ab" * 32 + "::speed=1", "key 1 (roo) has an unknown option"),
    ("BRIDGE_API_KEYS", "roo:" + "ab" * 32 + "::methods=auto", "key 1 (roo) has an option `methods` that is invalid"),
    ("BRIDGE_API_KEYS", "roo:" + "ab" * 32 + ":a:rate=1:b", "key 1 (roo) has 5 parts with `:` between"),
    ("BRIDGE_API_KEYS", "roo:" + "ab" * 32 + "::chats=all", "key 1 (roo) has an option `chats` that is invalid"),
    ("BRIDGE_API_KEYS", "roo:" + "ab" * 32 + "::letta=some", "key 1 (roo) has an option `letta` that is invalid"),
    ("BRIDGE_LETTA_API", "on", "must be one of off, agents, all"),
    ("BRIDGE_PROXIES", "-1", "must be a whole number from 0 to 10"),
    ("BRIDGE_DRAIN", "-1", "seconds from 0 to 3600"),
    ("BRIDGE_LOG_LEVEL", "loud", "must be one of debug, info, warning, error"),
    ("REDIS_URL", "localhost:6379", "must begin with redis://"),
    ("REDIS_URL", "redis://:se/cret@redis:6379", "in a password / is written %2F"),
    ("REDIS_URL", "redis://:/secret@redis:6379", "in a password / is written %2F"),
    ("REDIS_URL", "redis://:12#secret@redis:6379", "in a password / is written %2F, # %23"),
    ("REDIS_URL", "redis://redis:99999", "must be like redis://"),
    ("REDIS_URL", "redis://[redis:6379", "must be like redis://"),
    ("REDIS_URL", "rediss://redis:6379?ssl_cert_reqs=0", "?ssl_cert_reqs=none or =required"),
    ("REDIS_URL", "redis://redis:6379?ssl_cert_reqs=none", "only with rediss://"),
    ("BRIDGE_TURN_TIMEOUT", "inf", "seconds from 1 to 86400"),
    ("BRIDGE_TURN_TIMEOUT", "0.5", "seconds from 1 to 86400"),
    ("BRIDGE_TURN_TIMEOUT", "1e2", "seconds from 1 to 86400"),
    ("BRIDGE_FORMAT_RETRIES", "6", "must be a whole number from 0 to 5"),
    ("BRIDGE_TOOL_SEARCH", "513", "must be a whole number from 0 to 512"),
    ("BRIDGE_TOOL_SEARCH", "128, my-agent=many", "must be a whole number from 0 to 512"),
    ("BRIDGE_TOOL_SEARCH", "my-agent=40", "must have one number for all agents"),
    ("BRIDGE_TOOL_SEARCH", "128, 40", "must have one number for all agents"),
    ("BRIDGE_TOOL_SEARCH", "128, =40", "must have one number for all agents"),
    ("BRIDGE_TOOL_SEARCH", "128, +", "must have one number for all agents"),
    ("BRIDGE_IMAGE_URLS", "maybe", "must be 1 or 0"),
    ("BRIDGE_HISTORY_LIMIT", "-1", "whole number from 0 to 10000000"),
    ("BRIDGE_TOOL_WAIT", "3601", "seconds from 0 to 3600"),
    ("BRIDGE_TOOL_WAIT", "refuse=", "seconds from 0 to 3600"),
    ("BRIDGE_TOOL_WAIT", "close=1", "must be a number of seconds, or refuse= and such a number"),
    ("BRIDGE_TOOL_WAIT", "=1", "must be a number of seconds, or refuse="),
    ("BRIDGE_MAX_TURNS", "-1", "whole number from 0 to 896"),
    ("BRIDGE_MAX_TURNS", "897", "whole number from 0 to 896"),
    ("BRIDGE_MAX_TURNS", "many", "whole number"),
    ("BRIDGE_REPEAT_WAIT", "601", "seconds from 0 to 600"),
    ("BRIDGE_REPLY_WAIT", "0", "seconds from 1 to 86400"),
    ("BRIDGE_REPLY_WAIT", "1 day", "number of seconds"),
    ("BRIDGE_WAIT", "-1", "seconds from 0 to 3600"),
    ("BRIDGE_TRUSTED_HOSTS", "https://bridge.example.com", "must be host names such as bridge.example.com"),
    ("BRIDGE_TRUSTED_HOSTS", "*.example.com", ".example.com for all below it"),
]


def faults_of(**changes: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read_settings({**LEAST, **changes})
    return str(caught.value).splitlines()


@pytest.mark.parametrize(("variable", "value", "words"), BAD)
def test_a_bad_value_is_reported_with_the_name_of_its_variable(variable: str, value: str, words: str) -> None:
    (fault,) = faults_of(**{variable: value})
    assert fault.startswith(f"{variable}: ")
    assert words in fault


def test_the_table_above_has_every_variable_whose_value_can_be_bad() -> None:
    anything_goes = {
        "BRIDGE_HOST",
        "BRIDGE_ADMIN_PASSWORD",
        "BRIDGE_DATA_DIR",
        "BRIDGE_FINAL_TOOLS",
        "BRIDGE_CORS_ORIGINS",
    }
    assert {variable for variable, _, _ in BAD} == {row["variable"] for row in variable_rows()} - anything_goes


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"PORT": "x", "BRIDGE_METHOD": "y"})
    named = [line.split(" ")[0].rstrip(":") for line in str(caught.value).splitlines()]
    assert named == ["LETTA_BASE_URL", "PORT", "BRIDGE_METHOD", "BRIDGE_API_KEYS"]


def test_the_service_does_not_start_without_keys_unless_a_setting_says_so() -> None:
    (fault,) = faults_of(BRIDGE_ALLOW_ANONYMOUS="")
    assert fault.startswith("BRIDGE_API_KEYS is not set")
    assert "BRIDGE_ALLOW_ANONYMOUS=1" in fault


@pytest.mark.parametrize(
    "environment",
    [
        {"BRIDGE_API_KEYS": "s3cret!"},
        {"LETTA_BASE_URL": "http://user:s3cret!@letta:8283"},
        {"REDIS_URL": "redis:s3cret!@localhost"},
        {"LETTA_API_KEY": "s3cret!", "BRIDGE_ADMIN_PASSWORD": "s3cret!", "PORT": "x"},
    ],
)
def test_a_fault_never_shows_a_secret(environment: dict[str, str]) -> None:
    assert "s3cret" not in "".join(faults_of(**environment))


def test_a_fault_of_a_key_is_a_sentence_about_that_key() -> None:
    assert faults_of(BRIDGE_API_KEYS="a-long-enough-key,short") == [
        "BRIDGE_API_KEYS: key 2 is shorter than 8 characters: the command `keys new NAME` makes a key"
    ]


def test_settings_hold_the_hash_of_a_key_only() -> None:
    settings = read_settings({**LEAST, "BRIDGE_API_KEYS": "a-long-enough-key"})
    assert settings.api_keys == (ApiKey("key-1", DIGEST),)
    assert "a-long-enough-key" not in repr(settings)


@pytest.mark.parametrize("between", [",", " ", ", ", "\n", ",,"])
def test_keys_are_separated_by_commas_or_blanks_plain_or_hashed(between: str) -> None:
    settings = read_settings({**LEAST, "BRIDGE_API_KEYS": between.join(["one-more-key", f"web:{DIGEST.upper()}"])})
    assert [key.name for key in settings.api_keys] == ["key-1", "web"]
    assert settings.api_keys[1].sha256 == DIGEST


def test_the_defaults_are_those_of_the_table() -> None:
    settings = read_settings(LEAST)
    assert (settings.port, settings.host, settings.workers) == (8080, "0.0.0.0", 2)
    assert (settings.threads, settings.turns_at_once) == (64, 56)
    assert (settings.methods.for_agent("agent-1", "Ada"), settings.system_prompt) == ("auto", "block")
    assert (settings.letta_api, settings.chats.for_agent("agent-1", "Ada")) == ("off", "one")
    assert (settings.api_keys, settings.admin_password, settings.redis_url) == ((), "", "")
    assert settings.data_dir == Path(".bridge")
    assert settings.ignored_variables == ()


def test_a_variable_that_is_set_to_nothing_counts_as_not_set() -> None:
    assert read_settings({**LEAST, "PORT": " ", "BRIDGE_SYSTEM_PROMPT": ""}) == read_settings(LEAST)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("http://localhost:8283/", "http://localhost:8283"),
        (" https://letta.example.com/api/ ", "https://letta.example.com/api"),
        ("http://[::1]:8283", "http://[::1]:8283"),
        ("http://10.0.0.1", "http://10.0.0.1"),
        ("http://localhost:8283//", "http://localhost:8283"),
        ("http://localhost:8283/v1", "http://localhost:8283"),
        ("http://localhost:8283//v1//", "http://localhost:8283"),
        ("https://letta.example.com/api/v1/", "https://letta.example.com/api"),
        ("https://letta.example.com/v1/v1", "https://letta.example.com/v1"),
        ("https://letta.example.com/v1/api", "https://letta.example.com/v1/api"),
        ("https://letta.example.com/apiv1", "https://letta.example.com/apiv1"),
        ("http://v1", "http://v1"),
    ],
)
def test_the_address_of_letta_is_kept_without_slashes_and_v1_at_its_end(given: str, kept: str) -> None:
    assert read_settings({**LEAST, "LETTA_BASE_URL": given}).letta_base_url == kept


@pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
def test_a_flag_can_be_switched_on_in_several_words(value: str) -> None:
    assert read_settings({**LEAST, "BRIDGE_ALLOW_ANONYMOUS": value}).allow_anonymous is True


@pytest.mark.parametrize("value", ["0", "false", "No", "off"])
def test_a_flag_can_be_switched_off_in_several_words(value: str) -> None:
    keys = {"BRIDGE_API_KEYS": "a-long-enough-key"}
    assert read_settings({**LEAST, **keys, "BRIDGE_ALLOW_ANONYMOUS": value}).allow_anonymous is False


def test_the_settings_are_few_and_each_has_its_own_variable() -> None:
    names = [row["variable"] for row in variable_rows()]
    assert len(names) == len(set(names))
    assert len(names) <= 34


@pytest.mark.parametrize(("turns", "threads"), [("1", 64), ("56", 64), ("57", 66), ("100", 115), ("896", 1024)])
def test_more_turns_at_once_add_threads_and_leave_an_eighth_of_them_free(turns: str, threads: int) -> None:
    settings = read_settings({**LEAST, "BRIDGE_MAX_TURNS": turns})
    assert (settings.turns_at_once, settings.threads) == (int(turns), threads)
    assert settings.turns_at_once <= threads - threads // 8


@pytest.mark.parametrize(
    ("variables", "more"),
    [
        ({"BRIDGE_LETTA_API": "agents"}, 16),
        ({"BRIDGE_API_KEYS": f"web:{DIGEST}::letta=all"}, 16),
        ({"BRIDGE_API_KEYS": f"web:{DIGEST}::letta=off"}, 0),
    ],
)
def test_lettas_own_api_adds_threads_and_no_turns(variables: dict[str, str], more: int) -> None:
    settings = read_settings({**LEAST, **variables})
    assert (settings.passed_on_at_once, settings.threads, settings.turns_at_once) == (more, 64 + more, 56)


def test_a_parameter_replaces_its_default() -> None:
    settings = read_settings(LEAST, ping_interval=0.1, least_threads=8)
    assert (settings.ping_interval, settings.threads, settings.turns_at_once) == (0.1, 8, 7)


# --- variables of earlier versions ------------------------------------------------------------------------


def test_a_variable_of_an_earlier_version_is_ignored_and_named() -> None:
    settings = read_settings({**LEAST, "BRIDGE_PING_INTERVAL": "5", "BRIDGE_LOG_FORMAT": "text", "BRIDGE_THREADS": " "})
    assert settings.ping_interval == 15.0
    assert settings.ignored_variables == (
        "BRIDGE_PING_INTERVAL is not a setting any more and is ignored: it is always 15 seconds.",
        "BRIDGE_LOG_FORMAT is not a setting any more and is ignored:"
        " it is always text at a terminal and JSON elsewhere.",
    )


@pytest.mark.parametrize(
    "variable",
    sorted(name for name, now in FORMER_VARIABLES.items() if now.startswith("it is always") and " at " not in now),
)
def test_the_sentence_about_a_former_variable_has_the_value_that_holds(variable: str) -> None:
    settings = read_settings({**LEAST, variable: "1"})
    (sentence,) = settings.ignored_variables
    value = getattr(settings, variable.removeprefix("BRIDGE_").lower())
    assert f" {value:.15g} " in sentence


# --- misspelt variables -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("BRIDGE_METHD", "BRIDGE_METHOD"),
        ("BRIDGE_API_KEY", "BRIDGE_API_KEYS"),
        ("BRIDGE_KEYS", "BRIDGE_API_KEYS"),
        ("BRIDGE_PASSWORD", "BRIDGE_ADMIN_PASSWORD"),
        ("BRIDGE_PORT", "PORT"),
        ("BRIDGE_LETTA_BASE_URL", "LETTA_BASE_URL"),
        ("BRIDGE_REDIS_URL", "REDIS_URL"),
    ],
)
def test_a_misspelt_setting_is_named_with_the_nearest_one(misspelt: str, meant: str) -> None:
    settings = read_settings({**LEAST, misspelt: "s3cret"})
    assert settings.ignored_variables == (f"{misspelt} is not a setting and is ignored; did you mean {meant}?",)


def test_an_unknown_variable_that_is_like_no_setting_is_named() -> None:
    settings = read_settings({**LEAST, "BRIDGE_ZZZ": "1", "BRIDGE_": "1", "BRIDGE_METHD": " "})
    assert settings.ignored_variables == (
        "BRIDGE_ is not a setting and is ignored.",
        "BRIDGE_ZZZ is not a setting and is ignored.",
    )


def test_a_misspelt_setting_is_named_beside_what_is_wrong_without_it() -> None:
    missing, misspelt = faults_of(BRIDGE_ALLOW_ANONYMOUS="", BRIDGE_API_KEY="a-long-enough-key")
    assert missing.startswith("BRIDGE_API_KEYS is not set")
    assert misspelt == "BRIDGE_API_KEY is not a setting and is ignored; did you mean BRIDGE_API_KEYS?"


def test_variables_of_other_programs_are_not_named() -> None:
    services = {
        "BRIDGE_PORT": "tcp://10.0.0.1:8080",
        "BRIDGE_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "BRIDGE_PORT_8080_TCP_ADDR": "10.0.0.1",
        "BRIDGE_SERVICE_HOST": "10.0.0.1",
        "BRIDGE_SERVICE_PORT": "8080",
        "BRIDGE_REDIS_SERVICE_PORT_HTTP": "80",
        "METHD": "x",
        "MY_BRIDGE_METHD": "x",
    }
    assert read_settings({**LEAST, **services}).ignored_variables == ()


def test_variables_that_files_of_this_project_use_are_not_named() -> None:
    root = Path(__file__).parent.parent
    places = [
        "*.*",
        "Makefile",
        "Procfile",
        "Dockerfile",
        "docs/*.*",
        "bridge/**/*.py",
        "testbed/**/*.py",
        "bench/**/*.py",
    ]
    texts = [
        file.read_text() for place in places for file in root.glob(place) if file.suffix != ".png" and file.is_file()
    ]
    used = set(re.findall(r"\bBRIDGE_[A-Z_]*[A-Z]\b", "\n".join(texts))) - FORMER_VARIABLES.keys()
    assert used > OTHER_VARIABLES
    assert read_settings({**LEAST, **dict.fromkeys(OTHER_VARIABLES, "1")}).ignored_variables == ()
    assert used - OTHER_VARIABLES <= {row["variable"] for row in variable_rows()}


# --- .env -------------------------------------------------------------------------------------------------


def test_a_dotenv_file_fills_up_the_environment(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PORT=9000\nLETTA_BASE_URL='http://letta:1'\nEMPTY\n")
    merged = complete_environment({"PORT": "7000"}, tmp_path)
    assert merged == {"PORT": "7000", "LETTA_BASE_URL": "http://letta:1"}


def test_a_value_in_the_dotenv_file_is_not_interpolated(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LETTA_API_KEY='a${HOME}b'\n")
    assert complete_environment({}, tmp_path) == {"LETTA_API_KEY": "a${HOME}b"}


def test_without_a_dotenv_file_only_the_environment_counts(tmp_path: Path) -> None:
    assert complete_environment({"PORT": "1"}, tmp_path) == {"PORT": "1"}


def test_on_heroku_a_dotenv_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PORT=9000\n")
    assert "PORT" not in complete_environment({"DYNO": "web.1"}, tmp_path)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("rediss://:secret@host:1", "rediss://:secret@host:1?ssl_cert_reqs=none"),
        ("rediss://host:1/0?db=2", "rediss://host:1/0?db=2&ssl_cert_reqs=none"),
        ("rediss://host:1?ssl_cert_reqs=required", "rediss://host:1?ssl_cert_reqs=required"),
        ("redis://host:1", "redis://host:1"),
        ("", ""),
    ],
)
def test_on_heroku_the_certificate_of_redis_is_not_verified_unless_its_address_says_so(
    tmp_path: Path, given: str, used: str
) -> None:
    completed = complete_environment({"DYNO": "web.1", "REDIS_URL": given}, tmp_path)
    assert read_settings({**LEAST, **completed}).redis_url == used
    elsewhere = complete_environment({"REDIS_URL": given}, tmp_path)
    assert elsewhere["REDIS_URL"] == given


def test_agents_may_have_a_method_of_their_own() -> None:
    environment = {"LETTA_BASE_URL": "http://letta", "BRIDGE_ALLOW_ANONYMOUS": "1"}
    methods = read_settings({**environment, "BRIDGE_METHOD": "rewrite, Ada Lovelace=prompt, agent-7=message"}).methods
    assert methods.for_agent("agent-1", "Ada Lovelace") == "prompt"
    assert methods.for_agent("agent-7", "Bob") == "message"
    assert methods.for_agent("agent-8", "Eve") == "rewrite"


def test_agents_may_have_chats_of_their_own() -> None:
    chats = read_settings({**LEAST, "BRIDGE_CHATS": "each, Ada Lovelace=one, agent-7=each+main"}).chats
    assert chats.for_agent("agent-1", "Ada Lovelace") == "one"
    assert chats.for_agent("agent-7", "Ada Lovelace") == "each+main"
    assert chats.for_agent("agent-8", "Eve") == "each"
    others = read_settings({**LEAST, "BRIDGE_CHATS": "Ada=each"}).chats
    assert (others.for_agent("agent-1", "Ada"), others.for_agent("agent-2", "Bob")) == ("each", "one")


# --- the operator's own files -----------------------------------------------------------------------------


def test_rules_for_side_requests_are_added_to_those_of_the_bridge(tmp_path: Path) -> None:
    usual = read_settings(LEAST).own_files.side_rules
    (tmp_path / "side_requests.json").write_text('[{"name": "mine", "role": "user", "begins": "Name this chat"}]')
    (tmp_path / ".gitkeep").touch()
    rules = read_settings({**LEAST, "BRIDGE_FILES": str(tmp_path)}).own_files.side_rules
    assert rules[:-1] == usual
    assert (rules[-1].name, rules[-1].begins) == ("mine", "Name this chat")


def test_a_file_in_the_place_of_the_folder_of_tools_is_named(tmp_path: Path) -> None:
    (tmp_path / "tools").touch()
    (fault,) = faults_of(BRIDGE_FILES=str(tmp_path))
    assert "`tools`, which must be a folder" in fault
