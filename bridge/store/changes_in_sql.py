"""Makes changes of the store (port.py) in the tables of sqlite.py."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from bridge.store.port import Add, Append, Change, Put, Remove, RemoveList

_HAS_VALUE = "exists (select 1 from texts where key = ? and expires > ?)"
_VALUE_IS = "(select value from texts where key = ? and expires > ?) is ?"
_ADD = (
    "replace into texts values (?,"
    " ? + coalesce((select cast(value as integer) from texts where key = ? and expires > ?), 0), ?)"
)
_RENEW_LIVING_LIST = (
    "insert into lists values (?, ?) on conflict (key) do update set expires = excluded.expires where expires > ?"
)
_TRIM_LIST = (
    "delete from items where key = ? and number <="
    " (select number from items where key = ? order by number desc limit 1 offset ?)"
)


def put_if(db: sqlite3.Connection, put: Put, needs: str, unchanged: Mapping[str, str | None], now: float) -> bool:
    """Makes one change if the conditions of `Store.change` hold, with one statement: it is a transaction by itself."""
    where, values = _conditions(needs, unchanged, now)
    sql = f"replace into texts select ?, ?, ? where {where}"  # nosec B608 # our own terms
    return db.execute(sql, (put.key, put.value, now + put.keep, *values)).rowcount > 0


def make_changes_if(
    db: sqlite3.Connection, changes: Sequence[Change], needs: str, unchanged: Mapping[str, str | None], now: float
) -> bool:
    """Makes the changes in a transaction, if the conditions of `Store.change` hold."""
    where, values = _conditions(needs, unchanged, now)
    if values and not db.execute(f"select 1 where {where}", values).fetchone():  # nosec B608 # our own terms
        return False
    long_lists: dict[str, int] = {}
    for change in changes:
        if isinstance(change, Append):
            number = _append(db, change, now)
            if number > change.most:  # the newest item has the highest number: with a lower one, there are not too many
                long_lists[change.key] = change.most
        else:
            _make(db, change, now)
    for key, most in long_lists.items():
        db.execute(_TRIM_LIST, (key, key, most))
    return True


def _conditions(needs: str, unchanged: Mapping[str, str | None], now: float) -> tuple[str, list[Any]]:
    """Returns the conditions as SQL, and the values in it."""
    terms, values = ["true"], list[Any]()
    if needs:
        terms.append(_HAS_VALUE)
        values += needs, now
    for key, value in unchanged.items():
        terms.append(_VALUE_IS)
        values += key, now, value
    return " and ".join(terms), values


def _make(db: sqlite3.Connection, change: Put | Add | Remove | RemoveList, now: float) -> None:
    match change:
        case Put(key, value, keep):
            db.execute("replace into texts values (?, ?, ?)", (key, value, now + keep))
        case Add(key, by, keep):
            db.execute(_ADD, (key, by, key, now, now + keep))
        case Remove(key, None):
            db.execute("delete from texts where key = ?", (key,))
        case Remove(key, value):
            db.execute("delete from texts where key = ? and value = ?", (key, value))
        case RemoveList(key, unless):
            removed = db.execute(f"delete from lists where key = ? and not {_HAS_VALUE}", (key, unless, now))  # nosec B608
            if removed.rowcount:
                db.execute("delete from items where key = ?", (key,))


def _append(db: sqlite3.Connection, change: Append, now: float) -> int:
    """Adds the item, but leaves the list as long as it is then. Returns the item's number."""
    if not db.execute(_RENEW_LIVING_LIST, (change.key, now + change.keep, now)).rowcount:
        # The list has expired, and its items may still be there.
        db.execute("delete from items where key = ?", (change.key,))
        db.execute("replace into lists values (?, ?)", (change.key, now + change.keep))
    return db.execute("insert into items (key, item) values (?, ?)", (change.key, change.item)).lastrowid or 0
