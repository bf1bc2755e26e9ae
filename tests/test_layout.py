"""Tests are found by their place: tests/<room>/test_<module>.py tests bridge/<room>/<module>.py.

A test of several modules is named after the behaviour and listed here, with the reason.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
# These folders test the whole service, so nothing in them belongs to one module.
SUITES = {"real", "faults", "clients", "browser"}

SCRIPT = "the scripted model is one package: its script, its server, its refusals"
OF_THE_RUN = "it tests a part of the tests themselves"
BEHAVIOURS = {
    "catalogue/test_search_quality.py": "how good the search is: the whole room, with questions that others wrote",
    "cli/test_cli.py": "the module is group.py; how commands start, and `tools` and `sweep` as a program",
    "cli/test_commands.py": "every command, whichever module has it",
    "dialects/chat_completions/test_openai_package.py": "the whole dialect, with OpenAI's package as the client",
    "dialects/responses/test_openai_package.py": "the whole dialect, with OpenAI's package as the client",
    "heard/test_properties.py": "properties of the whole room, for generated conversations",
    "interception/test_broken_off_turns.py": "turns that end in the middle, whatever the method",
    "interception/test_rules.py": "the rules that each method gives the agent",
    "locks/test_locks.py": "files and leases must behave alike",
    "store/test_redis_tls.py": "Redis with TLS needs a server and certificates of its own",
    "store/test_stores.py": "the file and Redis must behave alike",
    "stubs/test_goldens.py": "the way of a tool through the whole room",
    "stubs/test_meanings.py": "what a schema means on its way through the whole room",
    "stubs/test_properties.py": "properties of the whole room, for generated tools",
    "sync/test_properties.py": "properties of the whole room, for generated events",
    "testbed/test_command.py": "the module is __main__.py",
    "testbed/test_model_context.py": SCRIPT,
    "testbed/test_model_real.py": SCRIPT,
    "testbed/test_model_replies.py": SCRIPT,
    "testbed/test_model_script.py": SCRIPT,
    "testbed/test_model_server.py": SCRIPT,
    "testbed/test_model_strictness.py": SCRIPT,
    "testbed/test_proxy_faults.py": "each fault of the proxy, apart from the proxy without faults",
    "turns/test_part_and_store.py": "turns while the store fails",
    "web/test_admin_filters.py": "web/admin/filters.py and charts.py",
    "web/test_admin_pages.py": "all pages of web/admin",
    "web/test_admin_sign_in.py": "signing in to web/admin, from the outside",
    "web/test_gunicorn_hooks.py": "the parts of gunicorn that worker.py replaces",
    "web/test_http.py": "HTTP around the API, which several modules serve",
    "test_app.py": "app.py, beside bridge/",
    "test_bench_budgets.py": "budgets of bench/ that are counts",
    "test_calls_of_other_keys.py": "calls of another key, through every API",
    "test_bench_documents.py": "the pages that bench/ writes",
    "test_complaints.py": "common complaints, through the whole service",
    "test_deployment.py": "the files for platforms",
    "test_docs_paths.py": "docs/",
    "test_docs_watch.py": "docs/",
    "test_import_law.py": "the imports of all modules",
    "test_impatient_clients.py": "clients that hang up and ask again, in front of the whole service",
    "test_readme.py": "the README's examples, and tables of docs/",
    "test_security_canaries.py": "secrets, through the whole service",
    "test_security_requests.py": "hostile requests, through the whole service",
    "test_security_wire.py": "hostile bytes, through the whole service",
    "test_threads_lacking.py": "a lack of threads, in every module that starts one",
    "test_two_lettas.py": "bridges in front of two Lettas that share a store",
    "test_typical_mistakes.py": "what people are told, through the whole service",
    "test_workers.py": "several workers of the whole service",
    "test_workers_starved.py": "a lack of files or disk, in the whole service",
    "test_choice.py": OF_THE_RUN,
    "test_clients_installed.py": OF_THE_RUN,
    "test_clients_process.py": OF_THE_RUN,
    "test_faults_table.py": OF_THE_RUN,
    "test_gateway_contract.py": OF_THE_RUN,
    "test_layout.py": OF_THE_RUN,
    "test_letta_checker.py": OF_THE_RUN,
    "test_matrix.py": OF_THE_RUN,
    "test_memory.py": OF_THE_RUN,
    "test_second_try.py": OF_THE_RUN,
    "test_testbed_unchanged.py": OF_THE_RUN,
}


def files_with_tests() -> list[Path]:
    found = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    return sorted(path for path in found if path.parts[0] not in SUITES)


def module_of(test: Path) -> Path:
    """Returns the file or the folder that the place of a test names."""
    room = ROOT if test.parts[0] == "testbed" else ROOT / "bridge"
    module = room / test.parent / test.stem.removeprefix("test_")
    return module if module.is_dir() else module.with_suffix(".py")


def test_every_test_is_named_after_a_module_or_listed_with_a_reason() -> None:
    assert [
        str(path) for path in files_with_tests() if not module_of(path).exists() and str(path) not in BEHAVIOURS
    ] == []


def test_the_list_names_only_tests_of_behaviour_that_exist() -> None:
    behaviours = {str(path) for path in files_with_tests() if not module_of(path).exists()}
    assert sorted(BEHAVIOURS.keys() - behaviours) == []


@pytest.mark.parametrize("file", sorted((TESTS / "clients").glob("*.py")), ids=lambda file: file.stem)
def test_the_modules_that_only_make_test_clients_runs_can_be_imported(file: Path) -> None:
    import_module(f"tests.clients.{file.stem}")
