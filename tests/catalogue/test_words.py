"""Names and texts become words, in whatever style they are written, and the forms of one word become equal."""

from __future__ import annotations

import time

import pytest

from bridge.catalogue.words import LONGEST_WORD, WordSplitter, split_words, stem, words_of

CREATE_ISSUE = ["create", "issue"]


@pytest.mark.parametrize(
    "name",
    [
        "create_issue",
        "create-issue",
        "create.issue",
        "create/issue",
        "create:issue",
        "createIssue",
        "CreateIssue",
        "CREATE_ISSUE",
        "create issue",
        "  Create: issue! ",
        "__create__issue__",
    ],
)
def test_every_style_of_a_name_has_the_same_words(name: str) -> None:
    assert split_words(name) == CREATE_ISSUE


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mcp__slack__sendMessage", ["mcp", "slack", "send", "message"]),
        ("getHTTPResponse", ["get", "http", "response"]),
        ("listPRs", ["list", "pr"]),
        ("PRsByID", ["pr", "by", "id"]),
        ("GitHub", ["git", "hub"]),
        ("oauth2Token", ["oauth", "2", "token"]),
        ("base64Encode", ["base", "64", "encode"]),
        ("aws_s3_getObject", ["aws", "s3", "get", "object"]),
        ("k8s_list_pods", ["k8s", "list", "pods"]),
        ("reset2fa", ["reset", "2fa"]),
        ("v2.pages.list", ["v2", "pages", "list"]),
        ("don't", ["don", "t"]),
    ],
)
def test_names_are_split_where_a_reader_would_split_them(name: str, words: list[str]) -> None:
    assert split_words(name) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Größe ÄNDERN", ["grosse", "andern"]),
        ("créerTicket", ["creer", "ticket"]),
        ("Создать задачу", ["создать", "задачу"]),
        ("역할 추가", ["역할", "추가"]),
        ("उपयोगकर्ता जोड़ें", ["उपयोगकर्ता", "जोड़ें"]),
        ("创建问题 issue", ["创建", "建问", "问题", "issue"]),
        ("“quoted” — text…", ["quoted", "text"]),
        ("\ud800 broken", ["broken"]),
        ("", []),
        ("!?", []),
        ("🎉", []),
    ],
)
def test_letters_of_other_languages_are_kept_without_accents(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    "forms",
    [
        "issue issues",
        "create creates created creating",
        "delete deletes deleted deleting",
        "reply replies replied replying",
        "category categories",
        "box boxes",
        "branch branches",
        "address addresses",
        "status statuses",
        "database databases",
        "response responses",
        "file files filing",
        "rate rates rating rated",
        "set setting settings",
        "plan plans planned planning",
        "add adds added adding",
        "merge merges merged merging",
        "message messages messaging",
        "employee employees",
        "remind reminder reminders",
        "subscribe subscriber subscribers",
    ],
)
def test_the_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    "words",
    [
        "user use",
        "customer custom",
        "order ord",
        "string str",
        "thing th",
        "need ne",
        "feed fe",
        "sms sm",
        "process proces",
        "analysis analysi",
        "file fill",
        "note not",
    ],
)
def test_different_words_have_different_stems(words: str) -> None:
    one, other = words.split()
    assert stem(one) != stem(other)


def test_words_of_a_text_are_stems_in_their_order() -> None:
    assert words_of("Lists the open issues") == [stem("lists"), "the", "open", stem("issue")]


def test_data_is_not_words() -> None:
    assert split_words(f"before {'x' * 5_000} {'y' * (LONGEST_WORD + 1)} after") == ["before", "after"]


def test_a_splitter_finds_the_same_words() -> None:
    splitter = WordSplitter()
    for name in ("github_createIssue", "github_list_issues", "Größe_ändern", ""):
        assert splitter.split(name) == split_words(name)


def test_a_long_text_is_split_in_little_time() -> None:
    text = "Creates a newIssue in the repository's tracker. " * 2_000
    started = time.thread_time()
    assert len(words_of(text)) == 18_000
    assert time.thread_time() - started < 5
