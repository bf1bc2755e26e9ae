"""Says what is wrong with the server at LETTA_BASE_URL, and what to do. Every such sentence is made here. Pure."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from errno import EHOSTUNREACH, ENETUNREACH
from http.client import BadStatusLine, RemoteDisconnected
from typing import Literal
from urllib.parse import urlsplit

from bridge import errors
from bridge.values import is_loopback

Cause = Literal[
    "refused",
    "unknown host",
    "no way",
    "no connection in time",
    "no answer in time",
    "no TLS",
    "TLS fails",
    "TLS hangs",
    "speaks TLS",
    "certificate",
    "closed",
    "not HTTP",
    "unreachable",
    "bridge",
    "redirect",
    "login",
    "web page",
    "not Letta",
    "proxy",
    "password refused",
    "password missing",
]

_CANT_BE_REACHED = "The Letta server at {where} can't be reached: "
# The first sentence says what is wrong, the others what to do. {where} is the address, or "LETTA_BASE_URL" for those
# who need not know the address.
_SENTENCES: Mapping[Cause, tuple[type[errors.LettaError], str]] = {
    "refused": (
        errors.LettaUnreachable,
        _CANT_BE_REACHED + "the connection was refused, so nothing listens at that port. Start Letta, or correct"
        " LETTA_BASE_URL.{more}",
    ),
    "unknown host": (
        errors.LettaUnreachable,
        _CANT_BE_REACHED + "no host of that name was found. Correct the name in LETTA_BASE_URL, or look at the DNS of"
        " the bridge's machine.",
    ),
    "no way": (
        errors.LettaUnreachable,
        _CANT_BE_REACHED + "the bridge's network has no way to that host. Correct LETTA_BASE_URL, or look at the"
        " network.",
    ),
    "no connection in time": (
        errors.LettaTimeout,
        _CANT_BE_REACHED + "no connection was made in time. Is the host in LETTA_BASE_URL right, and does a firewall"
        " let the bridge through?",
    ),
    "no answer in time": (
        errors.LettaTimeout,
        "The Letta server at {where} did not answer in time. Is it overloaded? Its log says more.",
    ),
    "no TLS": (
        errors.LettaUnreachable,
        _CANT_BE_REACHED + "it does not speak TLS. Write http:// instead of https:// in LETTA_BASE_URL.",
    ),
    "TLS fails": (
        errors.LettaUnreachable,
        _CANT_BE_REACHED + "no TLS connection could be agreed upon. If it does not speak TLS, write http:// instead of"
        " https:// in LETTA_BASE_URL.",
    ),
    "TLS hangs": (
        errors.LettaTimeout,
        _CANT_BE_REACHED + "it does not answer to TLS. If it does not speak TLS, write http:// instead of https:// in"
        " LETTA_BASE_URL.",
    ),
    "speaks TLS": (
        errors.LettaUnreachable,
        _CANT_BE_REACHED + "it speaks TLS. Write https:// instead of http:// in LETTA_BASE_URL.",
    ),
    "certificate": (
        errors.LettaUnreachable,
        _CANT_BE_REACHED + "its certificate is not trusted: {more}. Give it a certificate of a public authority for"
        " the host in LETTA_BASE_URL, or use http:// within a private network.",
    ),
    "closed": (
        errors.LettaUnreachable,
        _CANT_BE_REACHED + "it closed the connection without a whole answer. Is it just starting or restarting? Its"
        " log says more.",
    ),
    "not HTTP": (
        errors.LettaUnreachable,
        _CANT_BE_REACHED + "what listens there does not speak HTTP. Correct the port in LETTA_BASE_URL.",
    ),
    "unreachable": (
        errors.LettaUnreachable,
        _CANT_BE_REACHED + "the connection failed. Is it running, and is LETTA_BASE_URL right?",
    ),
    "bridge": (
        errors.LettaError,
        "{where} leads to a bridge, not to Letta. Set LETTA_BASE_URL of the bridge to the address of the Letta server,"
        " such as http://localhost:8283; only its clients have the bridge's own address.",
    ),
    "redirect": (
        errors.LettaUnreachable,
        "{where} answers with a redirect{target}, which the bridge does not follow. Set LETTA_BASE_URL to the address"
        " of Letta itself.",
    ),
    "login": (
        errors.LettaUnreachable,
        "{where} leads to a login page, not to Letta: a proxy asks people to sign in, which the bridge can't do. Set"
        " LETTA_BASE_URL to an address of Letta without that login.",
    ),
    "web page": (
        errors.LettaError,
        "{where} leads to a web page, not to Letta's API. Set LETTA_BASE_URL to the address of the Letta server, such"
        " as http://localhost:8283.",
    ),
    "not Letta": (
        errors.LettaError,
        "What answers at {where} is not Letta: this is not its protocol. Set LETTA_BASE_URL to the address of the"
        " Letta server, such as http://localhost:8283.",
    ),
    "proxy": (
        errors.LettaUnavailable,
        "A proxy answers at {where} that Letta does not answer it. Is Letta running? The proxy's log says more.",
    ),
    "password refused": (
        errors.LettaRefusedCredentials,
        "The Letta server refused the password of the bridge. Set LETTA_API_KEY to the server's password, which is"
        " its LETTA_SERVER_PASSWORD.",
    ),
    "password missing": (
        errors.LettaRefusedCredentials,
        "The Letta server asks for a password, and LETTA_API_KEY is not set. Set it to the server's password, which is"
        " its LETTA_SERVER_PASSWORD.",
    ),
}

_ADDRESS_UNSAID = "LETTA_BASE_URL"
_LOOPBACK = " In a container, localhost is the container itself."
# By OpenSSL's numbers of what is wrong with a certificate.
_CERTIFICATE_FAULTS = {
    10: "it has expired",
    18: "it is self-signed",
    19: "its authority is unknown here",
    20: "its authority is unknown here",
    21: "its authority is unknown here",
    62: "it is for another host name",
    64: "it is for another address",
}
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "UNKNOWN_PROTOCOL"})
# What nginx, Go's and Apache's servers say to plain HTTP at a port for TLS. Others send a TLS alert, or nothing.
_WANTS_TLS = re.compile(r"plain HTTP request was sent to HTTPS|HTTP request to an HTTPS|plain HTTP to an SSL", re.I)
_TLS_ALERT = "\x15\x03"
_LOGIN = re.compile(r"\b(log|sign)[- ]?(in|on)\b|\b(sso|saml2?|oauth2?|oidc|openid|authori[sz]e|auth)\b", re.I)
# What a page to sign in has in its title, or a field for the password.
_LOGIN_PAGE = re.compile(r"""<title[^<]*\b(log|sign)[- ]?(in|on)\b|type\s*=\s*["']?password""", re.I)


def make_error(cause: Cause, base_url: str = _ADDRESS_UNSAID, more: str = "", target: str = "") -> errors.LettaError:
    """Returns the error for a cause. `more` and `target` are the parts of its sentence that differ from case to case;
    `target` is, like the address, not for everybody.
    """
    kind, sentence = _SENTENCES[cause]
    failure = kind(sentence.format(where=base_url, more=more, target=target))
    failure.reason = sentence.format(where=_ADDRESS_UNSAID, more=more, target="")
    failure.advice = failure.reason.partition(". ")[2]
    return failure


def error_for_fault(cause: Cause, fault: BaseException, base_url: str) -> errors.LettaError:
    """Returns the error for a connection that failed with `fault`, of which `cause_of_fault` says the cause."""
    if cause == "refused" and is_loopback(urlsplit(base_url).hostname or ""):
        return make_error(cause, base_url, _LOOPBACK)
    if cause == "certificate":
        numbers = (getattr(inner, "verify_code", None) for inner in _faults_below(fault))
        why = next((_CERTIFICATE_FAULTS[number] for number in numbers if number in _CERTIFICATE_FAULTS), None)
        return make_error(cause, base_url, why or "it can't be verified")
    return make_error(cause, base_url)


def cause_of_fault(fault: BaseException) -> Cause:
    """Returns why a connection failed, by the faults of the system below the HTTP library's `fault`."""
    for inner in _faults_below(fault):
        found = _cause_of_one_fault(inner)
        if found is not None:
            return found
    return "unreachable"


def _cause_of_one_fault(fault: BaseException) -> Cause | None:
    """Returns None if a fault does not say what is wrong. The order matters: some classes include others."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        return "certificate"
    if isinstance(fault, ssl.SSLError):
        return "no TLS" if getattr(fault, "reason", "") in _NO_TLS else "TLS fails"
    if isinstance(fault, socket.gaierror):
        return "unknown host"
    if isinstance(fault, ConnectionRefusedError):
        return "refused"
    if isinstance(fault, BadStatusLine) and not isinstance(fault, RemoteDisconnected):
        return "speaks TLS" if _TLS_ALERT in str(fault) else "not HTTP"
    if isinstance(fault, ConnectionError):
        return "closed"
    if isinstance(fault, TimeoutError) and "handshake" in str(fault):
        return "TLS hangs"
    return "no way" if isinstance(fault, OSError) and fault.errno in (ENETUNREACH, EHOSTUNREACH) else None


def _faults_below(fault: BaseException) -> Iterator[BaseException]:
    """Yields a fault and those that caused it, the innermost first: HTTP libraries wrap those of the system."""
    inner = fault.__cause__ or fault.__context__
    if inner is not None:
        yield from _faults_below(inner)
    yield fault


def error_for_page(status: int, headers: Mapping[str, str], body: str, base_url: str) -> errors.LettaError | None:
    """Returns the error for an answer that Letta does not give: a redirect, a web page; None for any other."""
    if headers.get("x-bridge-letta-calls"):
        return make_error("bridge", base_url)
    if 300 <= status < 400:
        return _error_for_redirect(headers.get("location", ""), base_url)
    if status == 400 and _WANTS_TLS.search(body):
        return make_error("speaks TLS", base_url)
    if not is_web_page(headers, body):
        return None
    if status in (502, 503, 504):
        return make_error("proxy", base_url)
    if status >= 500:
        return None
    is_login = status in (401, 403) or _LOGIN_PAGE.search(body)
    return make_error("login" if is_login else "web page", base_url)


def is_web_page(headers: Mapping[str, str], body: str) -> bool:
    begins = body.lstrip("\ufeff \t\r\n")[:14].lower()
    return headers.get("content-type", "").startswith("text/html") or begins.startswith(("<!doctype html", "<html"))


def _error_for_redirect(location: str, base_url: str) -> errors.LettaError:
    """Names only the host to which a redirect leads: the rest of the address may have secrets."""
    try:
        target = urlsplit(location)
        host = f"{target.scheme}://{target.hostname}" if target.scheme and target.hostname else ""
    except ValueError:
        return make_error("redirect", base_url)
    if _LOGIN.search(f"{target.hostname} {target.path}".replace("_", "-")):
        return make_error("login", base_url)
    return make_error("redirect", base_url, target=f" to {host}" if host else "")
