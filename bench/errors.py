"""What can go wrong with a benchmark."""


class BenchFailed(Exception):
    """The benchmark can't go on; the message says why."""
