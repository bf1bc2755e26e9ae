"""The error of the benchmark."""


class BenchFailed(Exception):
    """The benchmark can't continue. The message says why."""
