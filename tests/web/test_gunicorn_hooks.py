"""The parts of gunicorn that the bridge depends on are still as the bridge needs them.

gunicorn promises nothing about them, so a new version may change them without notice. Where a test fails here, its
message says which part has changed and what in the bridge depends on it. Most of them are used by bridge/web/worker.py.
"""

from __future__ import annotations

import ast
import inspect
import logging
import os
import re
import runpy
import socket
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from selectors import BaseSelector
from types import SimpleNamespace
from typing import Any

import gunicorn  # type: ignore[import-untyped]
import pytest
from gunicorn.arbiter import Arbiter  # type: ignore[import-untyped]
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]
from gunicorn.http import wsgi  # type: ignore[import-untyped]
from gunicorn.http.body import Body, LengthReader  # type: ignore[import-untyped]
from gunicorn.http.errors import NoMoreData, ParseException  # type: ignore[import-untyped]
from gunicorn.http.parser import RequestParser  # type: ignore[import-untyped]
from gunicorn.http.unreader import SocketUnreader  # type: ignore[import-untyped]
from gunicorn.sock import UnixSocket  # type: ignore[import-untyped]
from gunicorn.workers import base  # type: ignore[import-untyped]
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, TConn, ThreadWorker  # type: ignore[import-untyped]

from bridge.web import worker as worker_module
from bridge.web.arrival import LONGEST_HEAD, READ_AHEAD, ReceivedBytes
from bridge.web.reply_writer import ReplyWriter
from bridge.web.worker import Worker

CONFIGURATION = Path(__file__).parent.parent.parent / "gunicorn.conf.py"
CLIENT, SERVER = ("192.0.2.1", 50_000), ("127.0.0.1", 8080)
ASKS = b"POST /path HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello"
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Part:
    """`form` is the signature of a method, or the type of an attribute."""

    form: str | type
    use: str


# All that worker.py uses, by the names that it has there: `self` is the worker, `conn` a connection, `req` a request.
USED = {
    "self.accept": Part("(listener)", "Worker.accept lets new clients wait where it fails with EMFILE and the like."),
    "self.enqueue_req": Part("(conn)", "Worker.enqueue_req receives a whole request before a thread gets it."),
    "self.handle": Part("(conn)", "Worker.serve_in_thread lets it parse and answer the request that was received."),
    "self.handle_request": Part("(req, conn)", "Over TLS, Worker.handle_request leaves the request to it."),
    "self.nr": Part(int, "Worker.count_request counts there."),
    "self.max_requests": Part(int, "Worker.count_request ends the worker after so many."),
    "self.max_keepalived": Part(int, "Worker.count_request keeps no more connections than that."),
    "self.run": Part("()", "Worker.run makes plain attributes of the settings before the event loop begins."),
    "self.get_thread_pool": Part("()", "The worker's pool wakes one thread for a request."),
    "self.keepalived_conns": Part(deque, "Worker.keep adds a connection there, in the thread of its request."),
    "self.on_client_socket_readable": Part(
        "(conn, client)", "Worker.keep has it called when the next request of a connection comes."
    ),
    "self._cap_keepalive": Part("(deadline)", "Worker._cap_keepalive does the same while threads add connections."),
    "self.notify": Part("()", "Worker.notify gives the sign of life once in a second."),
    "self.murder_pending": Part("()", "Worker.murder_pending cuts off slow clients when it is called."),
    "self.poller": Part(BaseSelector, "Worker.watch_connection registers there the connections that it reads from."),
    "self.tpool": Part(Executor, "Worker.give_to_thread submits complete requests to it."),
    "self.method_queue.defer": Part(
        "(callback, *args)", "Worker.keep_or_end has the event loop do with it what is rare after a request."
    ),
    "self.nr_conns": Part(int, "Worker.close_connection subtracts each connection that it closes."),
    "self.worker_connections": Part(int, "Worker.murder_pending compares nr_conns with it: are all places taken?"),
    "self.alive": Part(bool, "Worker.murder_pending gives silent clients less time while the worker stops."),
    "self.log.exception": Part("(msg, *args, **kwargs)", "Worker.call_safely logs why it closes a connection."),
    "self.log.warning": Part("(msg, *args, **kwargs)", "The worker logs what it could not serve."),
    "self.log.info": Part("(msg, *args, **kwargs)", "Worker.count_request logs why the worker ends."),
    "self.wsgi": Part(object, "Worker.settings finds the settings on the app."),
    "self.cfg.settings": Part(dict, "Worker.run reads all settings from it."),
    "self.cfg.__dict__": Part(dict, "Worker.run writes all settings to it."),
    "self.cfg.threads": Part(int, "Worker.get_thread_pool starts at most so many threads."),
    "self.cfg.is_ssl": Part(object, "Over TLS the worker leaves the reading to gunicorn."),
    "self.cfg.keepalive": Part(
        int, "Worker.murder_pending lets a client be silent for so long before its first request."
    ),
    "conn.sock": Part(socket.socket, "The worker reads from it, writes to it and shuts it down."),
    "conn.client": Part(tuple, "Worker.handle_request gives it to wsgi.create(), for REMOTE_ADDR."),
    "conn.server": Part(tuple, "Worker.handle_request gives it to wsgi.create(), for SERVER_NAME."),
    "conn.init": Part(
        "()", "Worker.serve_in_thread makes the parser with it, and handle() does not wait for bytes after it."
    ),
    "conn.close": Part(
        "(graceful=False)", "Worker.close_connection calls it in the event loop, which must not wait for the client."
    ),
    "conn.set_timeout": Part("()", "Worker.keep sets with it how long the connection is kept."),
    "conn.timeout": Part(object, "Worker.keep shortens the time while the worker stops."),
    "conn.parser": Part(RequestParser, "Worker.enqueue_req finds the bytes there that came with an earlier request."),
    "conn.parser.unreader": Part(SocketUnreader, "Worker.serve_in_thread lets it read from what was received."),
    "conn.parser.unreader.sock": Part(object, "Worker.serve_in_thread puts the received bytes in its place."),
    "conn.parser.unreader.take_buffered": Part(
        "()", "Worker.serve_in_thread and enqueue_req take the bytes after a request."
    ),
    "conn.parser.unreader.buf": Part(BytesIO, "Worker.keep_or_end looks there for bytes of the next request."),
    "conn.parser.unreader.unread": Part("(data)", "Worker.serve_in_thread puts back the bytes after a request."),
    "req.force_close": Part("()", "Worker.handle_request ends the connection after a body that was not read."),
    "req.body": Part(Body, "ArrivedBody reads what has arrived in its place, and leaves the rest to it."),
    "req.body.reader": Part(LengthReader, "Worker.handle_request finds in it that the body has a known length."),
    "req._expected_100_continue": Part(bool, 'Worker.handle_request sets it to False: "100 Continue" was sent before.'),
}
# Names in gunicorn.conf.py that are not for gunicorn.
NOT_FOR_GUNICORN = {"settings", "counts", "host"}


def changed(part: str, now: object, use: str) -> str:
    return f"gunicorn {gunicorn.__version__} has changed {part} ({now}). {use}"


class Log(Logger):  # type: ignore[misc]
    """gunicorn's logger, but without its handlers."""

    def __init__(self) -> None:
        self.error_log = logging.getLogger(__name__)

    def access(self, *_: object) -> None: ...


class World:
    """gunicorn's own threaded worker, and a connection to it."""

    def __init__(self) -> None:
        self.cfg = Config()
        self.worker = ThreadWorker(1, os.getppid(), [], None, 30, self.cfg, Log())
        self.worker.init_process()
        self.worker.wsgi = object()
        self.ours, self.client = socket.socketpair()
        self.client.setblocking(False)
        self.conn = TConn(self.cfg, self.ours, CLIENT, SERVER)
        self.calls: list[str] = []

    def record(self, *names: str) -> None:
        """Replaces methods of the worker; `calls` names those that were called."""
        for name in names:
            setattr(self.worker, name, lambda *_, name=name, **__: self.calls.append(name))

    def request(self, received: bytes = ASKS) -> Any:
        """The request that gunicorn parses from received bytes. From the client nothing comes any more."""
        self.client.shutdown(socket.SHUT_WR)
        self.conn.init()
        self.conn.parser.unreader.sock = ReceivedBytes(bytearray(received))
        try:
            return next(self.conn.parser)
        except StopIteration:
            name = "conn.parser.unreader.sock"
            pytest.fail(changed(name, "the parser does not read from it", USED[name].use))

    def part(self, name: str) -> object:
        start, _, rest = name.partition(".")
        request = self.request()
        return attrgetter(rest)({"self": self.worker, "conn": self.conn, "req": request}[start])

    def end(self) -> None:
        self.client.close()
        self.ours.close()
        self.worker.tpool.shutdown()
        self.worker.poller.close()
        self.worker.method_queue.close()
        self.worker.tmp.close()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with monkeypatch.context() as patched:
        patched.setattr(base.Worker, "init_process", lambda _: None)  # it would enter the event loop
        made = World()
    yield made
    made.end()


# --- the names that worker.py uses --------------------------------------------------------------------------


@pytest.mark.parametrize("name", USED)
def test_a_part_that_the_worker_uses_has_its_form(world: World, name: str) -> None:
    form, use = USED[name].form, USED[name].use
    full = re.sub(r"^\w+", lambda start: {"self": "ThreadWorker", "conn": "TConn", "req": "Request"}[start[0]], name)
    try:
        found = world.part(name)
    except AttributeError as missing:
        pytest.fail(changed(full, missing, use))
    if isinstance(form, type):
        assert isinstance(found, form), changed(full, f"it is {found!r}, not of type {form.__name__}", use)
    else:
        assert callable(found), changed(full, "it can't be called", use)
        signature = str(inspect.signature(found))
        assert signature == form, changed(full, f"it takes {signature} instead of {form}", use)


def test_the_list_names_all_that_the_worker_uses() -> None:
    used, beginnings = names_used_by_the_worker(), {name.rpartition(".")[0] for name in USED}
    assert used - beginnings <= set(USED), "worker.py uses parts of gunicorn that are not listed above"
    replaced = {f"self.{name}" for name in vars(Worker).keys() & {*dir(ThreadWorker)}}
    assert set(USED) <= used | replaced, "worker.py does not use these any more"


def names_used_by_the_worker() -> set[str]:
    """In full, as in the list; without what belongs to Python's own sockets, selectors and so on."""
    own = {f"self.{name}" for name in own_names() | {"__init__"}}
    pythons = {name for name, part in USED.items() if isinstance(part.form, type) and "gunicorn" not in repr(part.form)}
    found = set()
    for node in ast.walk(ast.parse(inspect.getsource(worker_module))):
        name = ast.unparse(node).replace("super()", "self") if isinstance(node, ast.Attribute) else ""
        name = f"conn.parser.{name}" if name.startswith("unreader.") else name
        owner = name.rpartition(".")[0]
        if re.fullmatch(r"(self|conn|req)\.[\w.]+", name) and name not in own and owner not in own | pythons:
            found.add(name)
    return found


def test_the_names_that_the_worker_adds_are_free(world: World) -> None:
    taken = own_names() & {*dir(world.worker)}
    assert not taken, changed("ThreadWorker", f"it has {taken} now", "Worker uses these names for parts of its own.")


def own_names() -> set[str]:
    """The methods and attributes that are Worker's alone."""
    arguments: tuple[object, ...] = (1, os.getppid(), [], None, 30, Config(), Log())
    ours, gunicorns = Worker(*arguments), ThreadWorker(*arguments)
    for worker in (ours, gunicorns):
        worker.tmp.close()
    overridden = {name.removeprefix("self.") for name in USED}
    return {
        name for name in {*vars(Worker), *(vars(ours).keys() - vars(gunicorns).keys())} - overridden if name[0] != "_"
    }


def test_connections_are_told_apart(world: World) -> None:
    other = TConn(world.cfg, world.ours, CLIENT, SERVER)
    use = "Worker.receiving and Worker.lingering have connections as keys."
    assert len({world.conn, other}) == 2, changed("TConn", "two of them are equal", use)


def test_a_stopping_worker_keeps_connections_for_some_seconds() -> None:
    use = "While the worker stops, murder_pending cuts off clients that are silent for longer."
    assert 0 < STOP_KEEPALIVE_LINGER < 10, changed("STOP_KEEPALIVE_LINGER", STOP_KEEPALIVE_LINGER, use)


# --- what they do -------------------------------------------------------------------------------------------


def test_every_connection_that_can_be_read_comes_to_enqueue_req(world: World) -> None:
    """New ones, kept ones, and kept ones of which the next request has come already."""
    use = "Worker.enqueue_req would not get every request."
    world.record("enqueue_req")
    world.worker.accept(SimpleNamespace(accept=lambda: (world.ours, CLIENT), getsockname=lambda: SERVER))
    assert world.calls == ["enqueue_req"], changed("accept", world.calls, use)
    assert world.worker.nr_conns == 1, changed(
        "accept", f"nr_conns is {world.worker.nr_conns}", USED["self.nr_conns"].use
    )
    kept: Future[bool] = Future()
    kept.set_result(True)
    world.conn.init()
    world.worker.finish_request(world.conn, kept)
    assert len(world.calls) == 1, changed("finish_request", world.calls, use)
    world.client.send(ASKS)
    world.worker.wait_for_and_dispatch_events(0)
    assert len(world.calls) == 2, changed("finish_request", "a kept connection is not watched", use)
    world.conn.parser.unreader.unread(ASKS)
    world.worker.finish_request(world.conn, kept)
    assert len(world.calls) == 3, changed("finish_request", "bytes that came early are not looked for", use)


def test_a_stopping_worker_keeps_its_connections_for_a_short_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    use = "Worker._cap_keepalive shortens the time for which a stopping worker keeps connections."
    world.record("_cap_keepalive", "notify", "murder_keepalived")
    world.worker.alive = False
    with monkeypatch.context() as patched:
        patched.setattr(world.worker.method_queue, "close", lambda: None)  # the test closes it
        world.worker.run()
    assert world.calls[:1] == ["_cap_keepalive"], changed("ThreadWorker.run", world.calls, use)


def test_a_setting_may_be_a_plain_attribute(world: World) -> None:
    vars(world.cfg).update({name: setting.get() for name, setting in world.cfg.settings.items()})
    vars(world.cfg)["keepalive"] = 7
    use = "Worker.run makes plain attributes of all settings, as they are read tens of times a request."
    assert world.cfg.keepalive == 7, changed("Config", f"keepalive is {world.cfg.keepalive}", use)
    assert not world.cfg.is_ssl, changed("Config.is_ssl", world.cfg.is_ssl, use)


def test_the_event_loop_calls_murder_pending_while_it_runs_and_while_it_stops(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepting: list[bool] = []

    def murder_pending() -> None:
        accepting.append(world.worker._accepting)
        world.worker.alive = False
        world.worker.nr_conns = 0 if len(accepting) == 2 else 1

    def wait_for_and_dispatch_events(timeout: float) -> None:
        world.calls.append("a round")
        assert len(world.calls) < 5, changed("ThreadWorker.run", f"{len(accepting)} calls of murder_pending", use)

    use = "Worker.murder_pending cuts off slow clients, also while the worker stops."
    world.worker.notify = lambda: None
    world.worker.wait_for_and_dispatch_events = wait_for_and_dispatch_events
    world.worker.murder_pending = murder_pending
    world.worker.nr_conns = world.worker.worker_connections
    with monkeypatch.context() as patched:
        patched.setattr(world.worker.method_queue, "close", lambda: None)  # the test closes it
        world.worker.run()
    use = "Worker.murder_pending relies on it: no client is accepted while nr_conns is at worker_connections."
    assert accepting == [False, False], changed("ThreadWorker.run", "it accepts more connections", use)


@pytest.mark.parametrize("is_kept", [True, False])
def test_handle_parses_what_the_unreader_gives_it_and_calls_handle_request(world: World, is_kept: bool) -> None:
    requests: list[Any] = []

    def handle_request(req: Any, _: object) -> bool:
        requests.append(req)
        return is_kept

    world.worker.handle_request = handle_request
    world.conn.init()
    world.conn.parser.unreader.sock = ReceivedBytes(bytearray(ASKS))
    world.client.send(b"x")
    world.client.shutdown(socket.SHUT_WR)
    result = world.worker.handle(world.conn)
    use = "Worker.serve_in_thread relies on it: no thread reads from a client's socket."
    assert len(requests) == 1, changed("handle", "it did not call handle_request", use)
    found = (requests[0].path, requests[0]._expected_100_continue, requests[0].body.read(), world.ours.recv(9))
    assert found == ("/path", True, b"hello" * (not is_kept), b"x"), changed("handle", found, use)
    assert result is is_kept, changed(
        "handle", f"it returned {result}", "Worker.serve_in_thread keeps the connection or not."
    )


@pytest.mark.parametrize("expected", [True, False])
def test_100_continue_is_sent_for_requests_that_are_marked(world: World, expected: bool) -> None:
    request = world.request()
    request._expected_100_continue = expected
    wsgi.create(request, world.ours, CLIENT, SERVER, world.cfg)
    world.ours.send(b".")
    sent = world.client.recv(100)
    use = USED["req._expected_100_continue"].use
    assert (sent == b"HTTP/1.1 100 Continue\r\n\r\n.") is expected, changed("_expected_100_continue", sent, use)
    assert (sent == b".") is not expected, changed("_expected_100_continue", sent, use)


def test_the_writer_of_the_reply_may_be_of_another_class(world: World) -> None:
    use = "Worker.handle_request has replies written by ReplyWriter."
    found, _ = wsgi.create(world.request(), world.ours, CLIENT, SERVER, world.cfg, ReplyWriter)
    assert type(found) is ReplyWriter, changed("wsgi.create", type(found), use)
    use = "ReplyWriter replaces these parts of Response, and calls them."
    for name in ("send_headers", "default_headers", "write", "close", "_emit_body", "should_close", "start_response"):
        assert callable(getattr(wsgi.Response, name, None)), changed(f"Response.{name}", "it is gone", use)
    assert found.headers_sent is False, changed("Response.headers_sent", found.headers_sent, use)


def test_the_app_gets_the_socket_and_learns_that_bodies_end(world: World) -> None:
    _, environ = wsgi.create(world.request(), world.ours, CLIENT, SERVER, world.cfg)
    use = "bridge/web/hangup.py looks there whether the client has gone, and breaks the connection there."
    found = environ.get("gunicorn.socket")
    assert found is world.ours, changed('environ["gunicorn.socket"]', found, use)
    use = "bridge/web/bodies.py knows by it that it can read the end of a body in chunks without waiting."
    found = environ.get("wsgi.input_terminated")
    assert found is True, changed('environ["wsgi.input_terminated"]', found, use)


# --- limits of the parser -----------------------------------------------------------------------------------

TOO_LONG = {
    "a head": b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * (LONGEST_HEAD // 8),
    "a request line": b"GET /" + b"x" * LONGEST_HEAD,
    "the line of a chunk": CHUNKED + b"5;" + b"x" * 10_000,
    "a trailer": CHUNKED + b"0\r\n" + b"X-A: b\r\n" * (LONGEST_HEAD // 8),
}


@pytest.mark.parametrize("case", TOO_LONG)
def test_the_parser_rejects_what_counts_as_complete_for_being_too_long(world: World, case: str) -> None:
    fault = failure_of(lambda: world.request(TOO_LONG[case]).body.read())
    use = "bridge/web/arrival.py has longer ones count as complete, as gunicorn rejects them."
    assert fault is not None, changed(f"the limit of {case}", "there is none", use)
    assert not isinstance(fault, NoMoreData), changed(f"the limit of {case}", f"it is not reached: {fault!r}", use)


@pytest.mark.parametrize(
    "body", [b"five\r\n", b"-5\r\nhello", b"5\r\nhelloXX0\r\n\r\n", b"0\r\nContent-Length: 5\r\n\r\n"]
)
def test_chunks_that_cannot_be_read_raise_parse_exceptions(world: World, body: bytes) -> None:
    fault = failure_of(lambda: world.request(CHUNKED + body).body.read())
    use = "bridge/web/faults.py answers 400 to a ParseException."
    assert isinstance(fault, ParseException), changed("the errors of chunks", repr(fault), use)


def test_the_first_byte_of_a_body_needs_no_more_bytes_than_are_read_ahead(world: World) -> None:
    request = world.request(CHUNKED + b"%X\r\n" % (2 * READ_AHEAD) + b"x" * READ_AHEAD)
    fault = failure_of(lambda: request.body.read(1))
    use = "bridge/web/arrival.py has so much come beyond the largest body, so that the app sees that it is too large."
    assert fault is None, changed("Body.read", f"{READ_AHEAD} bytes are too few: {fault!r}", use)


def failure_of(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as fault:
        return fault
    return None


# --- gunicorn.conf.py ---------------------------------------------------------------------------------------


def names_for_gunicorn() -> set[str]:
    names = set()
    for node in ast.parse(CONFIGURATION.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")} - NOT_FOR_GUNICORN


def test_gunicorn_takes_every_setting_and_hook_of_its_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """gunicorn ignores names that it does not know, and says nothing."""
    environment = {"LETTA_BASE_URL": "http://letta.test:8283", "BRIDGE_ALLOW_ANONYMOUS": "1"}
    folders = {"BRIDGE_DATA_DIR": str(tmp_path), "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for name, value in (environment | folders).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    values, cfg = runpy.run_path(str(CONFIGURATION)), Config()
    use = "gunicorn.conf.py sets it."
    for name in sorted(names_for_gunicorn()):
        assert name in cfg.settings, changed(name, "there is no such setting or hook", use)
        fault = failure_of(lambda name=name: cfg.set(name, values[name]))  # type: ignore[misc]
        assert fault is None, changed(name, repr(fault), use)


def test_listeners_lend_their_sockets(tmp_path: Path) -> None:
    use = "when_ready in gunicorn.conf.py sets timeouts on the sockets of all listeners."
    assert isinstance(Arbiter.LISTENERS, list), changed("Arbiter.LISTENERS", Arbiter.LISTENERS, use)
    listener = UnixSocket(str(tmp_path / "socket"), Config(), Log())
    try:
        assert isinstance(listener.sock, socket.socket), changed("BaseSocket.sock", listener.sock, use)
    finally:
        listener.close()


def test_post_worker_init_is_called_after_the_signals_are_set_and_the_app_is_loaded(world: World) -> None:
    world.record("init_signals", "load_wsgi", "run")
    world.cfg.set("post_worker_init", lambda worker: world.calls.append("post_worker_init"))
    world.worker.log.close_on_exec = lambda: None
    base.Worker.init_process(world.worker)
    for end in world.worker.PIPE:
        os.close(end)
    use = (
        "post_worker_init in gunicorn.conf.py takes the app from the worker, and calls the handler of SIGTERM it finds."
    )
    order = ["init_signals", "load_wsgi", "post_worker_init", "run"]
    assert world.calls == order, changed("Worker.init_process", world.calls, use)
