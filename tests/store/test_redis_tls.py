"""A Redis behind TLS with a self-signed certificate, as on some platforms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.config import read_settings
from bridge.errors import Busy, StoreUnavailable
from bridge.shared import SharedParts, make_shared_parts
from testbed.redis import Redis
from tests.tls import TlsProxy

pytestmark = pytest.mark.servers

PASSWORD = "canary-password"
ANY = "ssl_cert_reqs=none"


@pytest.fixture(scope="module")
def proxy() -> Iterator[TlsProxy]:
    with Redis(password=PASSWORD) as redis, TlsProxy(redis.port) as opened:
        yield opened


@pytest.fixture
def url(proxy: TlsProxy) -> str:
    return f"rediss://:{PASSWORD}@127.0.0.1:{proxy.port}/0"


def shared(url: str, folder: Path) -> SharedParts:
    """Returns what one worker shares with the others."""
    settings = {"BRIDGE_DATA_DIR": str(folder), "BRIDGE_WAIT": "1"}
    base = {"LETTA_BASE_URL": "http://letta.test:8283", "BRIDGE_ALLOW_ANONYMOUS": "1", "REDIS_URL": url}
    return make_shared_parts(read_settings(base | settings))


def works(one: SharedParts, other: SharedParts) -> bool:
    """Returns whether both see the same store and the same locks."""
    one.store.put("key", "value", 60)
    with one.locks.hold("agent-1"), pytest.raises(Busy), other.locks.hold("agent-1"):
        pass
    with other.locks.hold("agent-1") as hold:
        hold.check()
    return other.store.get("key") == "value" and other.store.put_if_free("key", "other", 60) == "value"


def test_any_certificate_is_accepted_where_the_address_says_so(url: str, tmp_path: Path) -> None:
    assert works(shared(f"{url}?{ANY}", tmp_path), shared(f"{url}?{ANY}", tmp_path))


def test_a_certificate_that_the_machine_trusts_is_accepted(
    proxy: TlsProxy, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.certificate))
    assert works(shared(url, tmp_path), shared(url, tmp_path))


def test_a_certificate_for_another_name_is_refused(
    proxy: TlsProxy, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.certificate))
    with pytest.raises(StoreUnavailable, match=ANY) as refused:
        shared(url.replace("127.0.0.1", "localhost"), tmp_path).store.check_writable()
    assert "localhost" not in refused.value.message


def test_an_untrusted_certificate_is_refused_with_the_setting_that_accepts_it(url: str, tmp_path: Path) -> None:
    here = shared(url, tmp_path)
    with pytest.raises(StoreUnavailable, match="certificate") as refused:
        here.store.check_writable()
    assert ANY in refused.value.message
    assert PASSWORD not in refused.value.message
    with pytest.raises(StoreUnavailable, match="certificate"), here.locks.hold("agent-1"):
        pass


def test_without_tls_the_connection_fails(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        shared(url.replace("rediss:", "redis:"), tmp_path).store.check_writable()
