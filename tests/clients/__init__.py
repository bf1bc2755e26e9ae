"""Real clients of the OpenAI API, and one made for the tests."""

import pytest

# So that what it asserts is shown as in a test.
pytest.register_assert_rewrite("tests.clients.reading")
