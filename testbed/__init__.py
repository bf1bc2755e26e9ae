"""Real Letta servers of many versions, side by side, for tests, benchmarks and demos."""
