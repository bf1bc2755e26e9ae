"""The rows of the table in `related.py`, each module for one kind of tools."""
