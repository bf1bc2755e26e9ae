-- What Letta's migrations expect of a new database. It has to be done by a superuser.
CREATE EXTENSION IF NOT EXISTS vector;
