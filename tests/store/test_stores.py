"""Every store does the same: the file of one machine, and a real Redis."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.errors import StoreUnavailable
from bridge.store import sqlite as local
from bridge.store.port import Add, Append, Change, Put, Remove, RemoveList, Store
from bridge.store.redis import RedisServer, RedisStore, milliseconds
from bridge.store.sqlite import LocalStore
from testbed.redis import Redis
from tests.alone import run_alone
from tests.clock import Clock
from tests.stores import KINDS, shared_store
from tests.waiting import until

LONG = 60.0
SHORT = 30.0


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture(params=KINDS)
def open_store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Callable[[], Store]]:
    with shared_store(request.param, tmp_path, clock) as open_one:
        yield open_one


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    return open_store()


@pytest.fixture
def passes(store: Store, clock: Clock) -> Callable[[float], None]:
    """Lets time pass: moves the clock of the file, and takes from what each key in Redis has left."""

    def passed(seconds: float) -> None:
        clock.now += seconds
        if isinstance(store, RedisStore):
            with store._server.client() as client:
                for key in client.scan_iter():
                    left = client.pttl(key)
                    assert left > 0, f"{key} never expires"
                    client.pexpire(key, left - milliseconds(seconds))

    return passed


def test_a_value_is_there_for_every_worker(open_store: Callable[[], Store]) -> None:
    open_store().put("key", "ä\n\0 value", LONG)
    assert open_store().get("key") == "ä\n\0 value"


def test_a_key_without_a_value_is_free(store: Store) -> None:
    assert store.get("key") is None
    assert store.items("list") == []


def test_several_values_are_read_at_once(store: Store, passes: Callable[[float], None]) -> None:
    store.put("short", "1", SHORT)
    store.put("long", "2", LONG)
    assert store.get_all("long", "none", "short", "long") == ["2", None, "1", "2"]
    assert store.get_all() == []
    passes(SHORT + 1)
    assert store.get_all("short", "long") == [None, "2"]


def test_a_newer_value_replaces_the_older(store: Store) -> None:
    store.put("key", "old", LONG)
    store.put("key", "new", LONG)
    assert store.get("key") == "new"


def test_the_first_claim_of_a_key_wins_and_the_others_get_its_value(open_store: Callable[[], Store]) -> None:
    assert open_store().put_if_free("key", "mine", LONG) is None
    assert open_store().put_if_free("key", "yours", LONG) == "mine"
    assert open_store().put_if_free("key", "mine", LONG) is None


def test_only_one_of_many_claims_at_once_wins(open_store: Callable[[], Store]) -> None:
    answers: list[str | None] = []
    stores = [open_store() for _ in range(4)]

    def claim(number: int) -> None:
        answers.append(stores[number % 4].put_if_free("key", str(number), LONG))

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count(None) == 1
    assert set(answers) - {None} == {stores[0].get("key")}


def test_a_value_is_swapped_only_if_it_is_the_expected_one(store: Store) -> None:
    store.put("key", "a", LONG)
    assert store.replace_if_unchanged("key", "a", "b", LONG)
    assert not store.replace_if_unchanged("key", "a", "c", LONG)
    assert store.get("key") == "b"
    assert not store.replace_if_unchanged("nothing", "a", "b", LONG)
    assert store.get("nothing") is None


def test_a_claim_is_given_up_only_by_its_owner(store: Store) -> None:
    assert store.put_if_free("key", "mine", LONG) is None
    assert store.change([Remove("key", "yours")])
    assert store.get("key") == "mine"
    assert store.change([Remove("key", "mine")])
    assert store.get("key") is None
    assert store.change([Remove("key", "mine")])


def test_a_list_keeps_its_newest_items_in_order(open_store: Callable[[], Store]) -> None:
    for number in range(7):
        open_store().append("list", str(number), 5, LONG)
    assert open_store().items("list") == ["2", "3", "4", "5", "6"]


def test_lists_do_not_mix(store: Store) -> None:
    for number in range(6):
        store.append(f"list-{number % 2}", str(number), 2, LONG)
    assert (store.items("list-0"), store.items("list-1")) == (["2", "4"], ["3", "5"])


def test_a_counter_counts_for_all_workers(open_store: Callable[[], Store]) -> None:
    assert [open_store().add_to_counter("turns", by, LONG) for by in (1, 2, -1)] == [1, 3, 2]


def test_a_removed_key_is_free(store: Store) -> None:
    store.put("key", "value", LONG)
    store.append("list", "item", 5, LONG)
    store.add_to_counter("counter", 3, LONG)
    store.remove("key", "list", "counter", "nothing")
    assert store.get("key") is None
    assert store.items("list") == []
    assert store.add_to_counter("counter", 1, LONG) == 1


def test_everything_expires(store: Store, passes: Callable[[float], None]) -> None:
    store.put("key", "value", SHORT)
    store.append("list", "item", 5, SHORT)
    store.add_to_counter("counter", 3, SHORT)
    passes(SHORT)
    assert store.get("key") is None
    assert store.items("list") == []
    assert store.add_to_counter("counter", 1, LONG) == 1
    assert store.put_if_free("key", "next", LONG) is None


def test_a_list_that_expired_begins_again_without_its_items(store: Store, passes: Callable[[float], None]) -> None:
    store.append("list", "old", 5, SHORT)
    passes(SHORT)
    store.append("list", "new", 5, LONG)
    assert store.items("list") == ["new"]


def test_the_time_is_counted_from_the_last_write(store: Store, passes: Callable[[float], None]) -> None:
    store.put("key", "value", SHORT)
    store.put("key", "value", LONG)
    store.append("list", "a", 5, SHORT)
    store.append("list", "b", 5, LONG)
    passes(SHORT + 1)
    assert store.get("key") == "value"
    assert store.items("list") == ["a", "b"]


# --- several changes at once --------------------------------------------------------------------------


def test_changes_are_made_together_and_in_order(open_store: Callable[[], Store]) -> None:
    open_store().put("old", "value", LONG)
    open_store().append("old list", "item", 5, LONG)
    changes: list[Change] = [
        Put("key", "first", LONG),
        Put("key", "ä\n\0 second", LONG),
        *(Append("list", str(number), 3, LONG) for number in range(5)),
        Add("counter", 2, LONG),
        Add("counter", 3, LONG),
        Remove("old"),
        RemoveList("old list"),
        Append("old list", "new", 5, LONG),
        Remove("nothing"),
        RemoveList("no list"),
    ]
    assert open_store().change(changes)
    read = open_store()
    assert read.get_all("key", "counter", "old") == ["ä\n\0 second", "5", None]
    assert (read.items("list"), read.items("old list")) == (["2", "3", "4"], ["new"])


def test_many_changes_can_be_made_together(store: Store) -> None:
    assert store.change([Put(f"key-{number}", str(number), LONG) for number in range(3_000)])
    assert store.get_all("key-0", "key-2999") == ["0", "2999"]
    assert store.change([])


def test_changes_that_need_a_key_are_only_made_while_it_is_there(store: Store, passes: Callable[[float], None]) -> None:
    for changes in ([Put("key", "value", LONG)], [Append("list", "item", 5, LONG), Put("key", "value", LONG)]):
        store.remove("key", "list", "needed")
        assert not store.change(changes, needs="needed")
        assert (store.get("key"), store.items("list")) == (None, [])
        store.put("needed", "1", SHORT)
        assert store.change(changes, needs="needed")
        assert store.get("key") == "value"
        passes(SHORT)
        assert not store.change([Put("key", "other", LONG)], needs="needed")
        assert store.get("key") == "value"


@pytest.mark.parametrize("several", [False, True])
def test_changes_are_only_made_while_other_keys_are_unchanged(
    store: Store, passes: Callable[[float], None], several: bool
) -> None:
    def change(value: str, **unchanged: str | None) -> bool:
        return store.change([Put("key", value, LONG)] * (2 if several else 1), unchanged=unchanged)

    store.put("other", "a", SHORT)
    assert not change("1", other="b")
    assert not change("1", other=None)
    assert not change("1", other="a", free="a")
    assert store.get("key") is None
    assert change("1", other="a", free=None, key=None)
    assert not change("2", other="a", key=None)
    passes(SHORT)
    assert not change("2", other="a")
    assert store.get("key") == "1"
    assert change("2", other=None)
    assert store.get("key") == "2"


def test_a_list_is_not_removed_while_another_key_is_there(store: Store, passes: Callable[[float], None]) -> None:
    store.append("list", "item", 5, LONG)
    store.put("reader", "1", SHORT)
    store.change([RemoveList("list", unless="reader")])
    assert store.items("list") == ["item"]
    passes(SHORT)
    store.change([RemoveList("list", unless="reader")])
    assert store.items("list") == []


def test_what_changes_write_expires(store: Store, passes: Callable[[float], None]) -> None:
    store.change([Put("key", "value", SHORT), Append("list", "old", 5, SHORT), Add("counter", 3, SHORT)])
    passes(SHORT)
    assert (store.get("key"), store.items("list")) == (None, [])
    assert store.change([Append("list", "new", 5, LONG), Add("counter", 1, LONG)], unchanged={"key": None})
    assert (store.items("list"), store.get("counter")) == (["new"], "1")


def test_of_many_changes_at_once_on_the_same_condition_one_is_made(open_store: Callable[[], Store]) -> None:
    stores = [open_store() for _ in range(4)]
    made: list[int] = []

    def claim(number: int) -> None:
        changes: list[Change] = [Put("key", str(number), LONG), Append("list", str(number), 100, LONG)]
        if stores[number % 4].change(changes[: 1 + number % 2], unchanged={"key": None}):
            made.append(number)

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(number) for number in made] == [stores[0].get("key")]
    assert len(stores[0].items("list")) == made[0] % 2


def test_changes_of_many_workers_at_once_are_not_mixed(open_store: Callable[[], Store]) -> None:
    """Each makes two changes that belong together, on the condition that nobody else changed the first since."""
    stores, rounds = [open_store() for _ in range(4)], 25

    def work(store: Store) -> None:
        done = 0
        while done < rounds:
            before = store.get("sum")
            after = str(int(before or 0) + 1)
            done += store.change(
                [Put("sum", after, LONG), Append("log", after, 1_000, LONG)], unchanged={"sum": before}
            )

    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].items("log") == [str(number) for number in range(1, 4 * rounds + 1)]


def test_the_check_of_a_store_that_works_raises_nothing(store: Store) -> None:
    store.check_writable()


# --- the file -----------------------------------------------------------------------------------------


def test_a_process_that_was_forked_during_a_call_can_use_the_store(tmp_path: Path) -> None:
    run_alone(fork_during_a_call, tmp_path)


def fork_during_a_call(folder: Path) -> None:
    store = LocalStore(folder / "shared.db")
    child = multiprocessing.get_context("fork").Process(target=lambda: store.put("key", "of the child", LONG))
    with store._connection():
        child.start()
    child.join(10)
    child.kill()
    assert store.get("key") == "of the child"


def test_workers_that_were_forked_share_the_file(tmp_path: Path) -> None:
    run_alone(fork_workers_that_count, tmp_path)


def fork_workers_that_count(folder: Path) -> None:
    store = LocalStore(folder / "shared.db")
    store.put("key", "0", LONG)
    workers = [
        multiprocessing.get_context("fork").Process(
            target=lambda: [store.add_to_counter("n", 1, LONG) for _ in range(200)]
        )
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert store.add_to_counter("n", 0, LONG) == 600


def test_workers_can_open_a_new_file_at_once(tmp_path: Path) -> None:
    """SQLite does not wait, but fails, if two set the journal mode of a new file at once."""
    run_alone(fork_workers_that_open_new_files, tmp_path)


def fork_workers_that_open_new_files(folder: Path) -> None:
    forks = multiprocessing.get_context("fork")
    together, failed = forks.Barrier(4), forks.Value("i", 0)

    def work() -> None:
        for number in range(150):
            together.wait()
            try:
                LocalStore(folder / f"shared{number}.db").check_writable()
            except StoreUnavailable:
                with failed.get_lock():
                    failed.value += 1

    workers = [forks.Process(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert failed.value == 0


def test_expired_values_are_removed_from_the_file(tmp_path: Path) -> None:
    now = [1000.0]
    store = LocalStore(tmp_path / "shared.db", lambda: now[0])
    for turn in range(1000):
        store.put(f"key-{turn}", "x" * 30_000, 10)
        store.append(f"list-{turn}", "x" * 30_000, 10, 10)
        now[0] += 1
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 20_000_000


def test_the_file_is_for_the_user_of_the_bridge_alone(tmp_path: Path) -> None:
    LocalStore(tmp_path / "shared.db").put("key", "value", LONG)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


FULL_DISK = """
import resource, sys
from pathlib import Path
from bridge.store.sqlite import LocalStore
from bridge.errors import StoreUnavailable
store = LocalStore(Path(sys.argv[1]))
store.put("before", "kept", 60)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
try:
    for number in range(1000):
        store.put(f"key-{number}", "x" * 10_000, 60)
except StoreUnavailable:
    sys.stdout.write("refused\\n")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.put("after", "works", 60)
sys.stdout.write(f"{store.get('before')} {store.get('after')}\\n")
"""


@pytest.mark.fault("the disk is full or can't be written")
def test_a_full_disk_is_reported_and_damages_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "shared.db")],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.splitlines() == ["refused", "kept works"], done.stderr


FEW_FILES = """
import resource, sys
from pathlib import Path
from bridge.locks.files import FileLocker
from bridge.store.sqlite import LocalStore
from bridge.errors import StoreUnavailable
folder = Path(sys.argv[1])
taken = [open("/dev/null") for _ in range(60)]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken += [open("/dev/null") for _ in range(64 - 3 - len(taken))]
store, locker = LocalStore(folder / "shared.db"), FileLocker(folder)
for ask in (store.check_writable, lambda: locker.take_lock("a", lambda: False)):
    try:
        ask()
    except StoreUnavailable:
        sys.stdout.write("refused\\n")
    else:
        sys.exit("not refused")
for file in taken:
    file.close()
store.check_writable()
locker.take_lock("a", lambda: False).release("ended")
"""


@pytest.mark.fault("the disk is full or can't be written")
def test_changes_that_fail_in_the_middle_are_not_made_at_all(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "shared.db")
    unwritable: str = None  # type: ignore[assignment]
    with pytest.raises(StoreUnavailable):
        store.change([Put("key", "value", LONG), Append("list", "item", 5, LONG), Put("other", unwritable, LONG)])
    assert (store.get("key"), store.items("list")) == (None, [])


@pytest.mark.fault("the disk is full or can't be written")
def test_changes_that_need_a_key_are_not_made_when_the_file_was_removed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "shared.db")
    store.put("needed", "1", LONG)
    for file in tmp_path.iterdir():
        file.unlink()
    assert not store.change([Append("list", "item", 5, LONG)], needs="needed")
    assert not store.change([Put("key", "value", LONG)], unchanged={"needed": "1"})
    assert (store.items("list"), store.get("key")) == ([], None)


@pytest.mark.fault("too few file descriptors")
def test_too_many_open_files_are_reported_until_some_are_closed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FEW_FILES, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert (done.stdout.splitlines(), done.returncode) == (["refused"] * 2, 0), done.stderr


@pytest.mark.fault("the clock is set")
def test_a_clock_that_is_set_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path / "shared.db")
    store.put("key", "value", LONG)
    now = time.time()
    for then in (now + 3600, now - 3600):
        monkeypatch.setattr(time, "time", lambda then=then: then)
        assert store.get("key") == "value"
        assert LocalStore(tmp_path / "shared.db").put_if_free("key", "other", LONG) == "value"


@pytest.mark.fault("the disk is full or can't be written")
def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "missing" / "shared.db")
    with pytest.raises(StoreUnavailable, match="BRIDGE_DATA_DIR"):
        store.put("key", "value", LONG)
    (tmp_path / "missing").mkdir()
    store.put("key", "value", LONG)


@pytest.mark.fault("the disk is full or can't be written")
def test_workers_share_the_new_file_when_the_old_one_is_removed(tmp_path: Path) -> None:
    """So do workers that had the old one open: what one claims is claimed for all."""
    old = LocalStore(tmp_path / "shared.db")
    old.put("key", "value", LONG)
    for file in tmp_path.iterdir():
        file.unlink()
    assert old.put_if_free("key", "mine", LONG) is None
    assert LocalStore(tmp_path / "shared.db").put_if_free("key", "yours", LONG) == "mine"
    old.check_writable()


@pytest.mark.fault("the disk is full or can't be written")
def test_a_file_that_a_crash_of_the_machine_corrupted_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = tmp_path / "boot_id"
    monkeypatch.setattr(local, "_BOOT_ID", boot)
    boot.write_text("before")
    LocalStore(tmp_path / "shared.db").put("key", "value", LONG)
    for file in tmp_path.glob("shared.db*"):
        file.write_bytes(b"lost" * 5000)
    with pytest.raises(StoreUnavailable):
        LocalStore(tmp_path / "shared.db").check_writable()
    boot.write_text("after")
    stores = [LocalStore(tmp_path / "shared.db") for _ in range(2)]
    assert stores[0].put_if_free("key", "new", LONG) is None
    assert stores[1].get("key") == "new"


def test_a_machine_that_was_started_again_has_an_empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clock starts again, too."""
    boot = tmp_path / "boot_id"
    monkeypatch.setattr(local, "_BOOT_ID", boot)
    boot.write_text("before")
    LocalStore(tmp_path / "shared.db", lambda: 1_000_000.0).put("key", "value", LONG)
    boot.write_text("after")
    assert LocalStore(tmp_path / "shared.db", lambda: 1.0).get("key") is None


@pytest.mark.fault("the disk is full or can't be written")
def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "shared.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StoreUnavailable, match=r"shared\.db"):
        LocalStore(tmp_path / "shared.db").check_writable()


# --- Redis --------------------------------------------------------------------------------------------


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_a_redis_that_stopped_is_reported_and_found_again() -> None:
    with Redis() as server:
        store = RedisStore(RedisServer(server.url))
        store.put("key", "value", LONG)
        server.stop()
        with pytest.raises(StoreUnavailable, match="REDIS_URL"):
            store.get("key")
        server.start()
        assert store.get("key") is None
        assert store.put_if_free("key", "value", LONG) is None


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_changes_that_need_a_key_are_not_made_when_redis_was_emptied() -> None:
    with Redis() as server:
        store = RedisStore(RedisServer(server.url))
        store.put("needed", "1", LONG)
        server.stop()
        with pytest.raises(StoreUnavailable, match="REDIS_URL"):
            store.change([Put("key", "value", LONG)], needs="needed")
        server.start()
        assert not store.change([Append("list", "item", 5, LONG)], needs="needed")
        assert not store.change([Put("key", "value", LONG)], unchanged={"needed": "1"})
        assert (store.items("list"), store.get("key")) == ([], None)


def works(store: Store) -> bool:
    try:
        store.check_writable()
    except StoreUnavailable:
        return False
    return True


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_a_redis_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.store.redis.TIMEOUT_SECONDS", 0.2)
    with Redis() as server:
        store = RedisStore(RedisServer(server.url))
        until(lambda: works(store))
        server.pause()
        with pytest.raises(StoreUnavailable):
            store.check_writable()
        server.resume()
        until(lambda: works(store))


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_the_password_of_redis_is_needed_and_never_shown() -> None:
    with Redis(password="right-password") as server:
        RedisStore(RedisServer(server.url)).check_writable()
        wrong = server.url.replace("right-password", "wrong-password")
        with pytest.raises(StoreUnavailable) as refused:
            RedisStore(RedisServer(wrong)).check_writable()
        assert "wrong-password" not in str(refused.value)
