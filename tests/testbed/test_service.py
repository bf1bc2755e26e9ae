from __future__ import annotations

import pytest

from testbed.service import local_url


@pytest.mark.parametrize(
    ("host", "address"),
    [
        (None, "127.0.0.1"),
        ("", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("192.0.2.7", "192.0.2.7"),
        ("::", "[::1]"),
        ("[::1]", "[::1]"),
    ],
)
def test_a_service_is_reached_at_the_address_on_which_it_listens(host: str | None, address: str) -> None:
    set_ = {} if host is None else {"BRIDGE_HOST": host}
    assert local_url({"PORT": "8080", **set_}) == f"http://{address}:8080"
