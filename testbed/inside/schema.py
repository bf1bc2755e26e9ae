"""Runs in a Letta version's own Python: makes its tables in the empty database of LETTA_PG_URI.

The packages carry no migrations. LETTA_PG_URI must be set before Letta is imported, since the models choose
SQLite's column types without it.
"""

import importlib
import os


def main() -> None:
    """Make the extension, the tables and the sequence that numbers the messages."""
    sqlalchemy = importlib.import_module("sqlalchemy")
    engine = sqlalchemy.create_engine(os.environ["SCHEMA_URI"])
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("create extension if not exists vector"))
    importlib.import_module("letta.orm")
    importlib.import_module("letta.orm.base").Base.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("create sequence if not exists message_seq_id"))
        connection.execute(
            sqlalchemy.text("alter table messages alter column sequence_id set default nextval('message_seq_id')")
        )


if __name__ == "__main__":
    main()
