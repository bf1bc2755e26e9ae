"""The Letta versions that the testbed can run, and how to install each. Data only.

`released` limits the packages that the resolver may choose. A release works with the packages of its own time and
mostly not with later ones, which its metadata does not exclude.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from testbed.errors import UnknownVersion

Database = Literal["sqlite", "postgresql"]

# Some versions import these with either database, but few versions declare them.
DRIVERS = ("aiosqlite", "sqlite-vec", "asyncpg", "pg8000", "psycopg2-binary", "pgvector")

# Without these the server's OpenAPI document fails with KeyError: '$ref'.
OPENAPI_PINS = ("fastapi==0.116.1", "starlette==0.47.3", "pydantic==2.11.7", "sqlmodel==0.0.24")

# Some versions import these without declaring them.
UNDECLARED = ("e2b-code-interpreter>=1.0.3", "orjson")

V1_AGENT = "letta_v1_agent"
OLD_AGENTS = ("memgpt_agent",)
V2_AGENTS = (*OLD_AGENTS, "memgpt_v2_agent")
ALL_AGENTS = (*V2_AGENTS, V1_AGENT)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one version is installed and started."""

    version: str
    released: date
    database: Database
    megabytes: int
    agent_types: tuple[str, ...]
    extra: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages to install, as pip requirements."""
        return (f"letta[sqlite]=={self.version}", *DRIVERS, *self.extra)

    @property
    def exclude_newer(self) -> str:
        """The latest time at which a package may have been published, in the format of RFC 3339."""
        day = self.released + timedelta(days=2)
        return datetime(day.year, day.month, day.day, tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


RECIPES: tuple[Recipe, ...] = (
    Recipe("0.6.54", date(2025, 4, 19), "sqlite", 430, OLD_AGENTS),
    Recipe("0.7.29", date(2025, 6, 1), "sqlite", 470, OLD_AGENTS, UNDECLARED),
    Recipe("0.8.17", date(2025, 7, 21), "sqlite", 480, V2_AGENTS, UNDECLARED),
    Recipe("0.11.7", date(2025, 9, 4), "sqlite", 710, V2_AGENTS),
    Recipe("0.12.1", date(2025, 10, 9), "postgresql", 780, ALL_AGENTS, OPENAPI_PINS),
    Recipe("0.13.0", date(2025, 10, 24), "postgresql", 780, ALL_AGENTS, OPENAPI_PINS),
    Recipe("0.14.0", date(2025, 11, 14), "postgresql", 780, ALL_AGENTS, OPENAPI_PINS),
    Recipe("0.15.1", date(2025, 11, 26), "postgresql", 780, ALL_AGENTS, OPENAPI_PINS),
    Recipe("0.16.1", date(2025, 12, 18), "postgresql", 800, ALL_AGENTS),
    Recipe("0.16.2", date(2026, 1, 12), "postgresql", 840, ALL_AGENTS),
    Recipe("0.16.4", date(2026, 1, 29), "postgresql", 870, ALL_AGENTS),
    Recipe("0.16.8", date(2026, 5, 14), "postgresql", 850, ALL_AGENTS),
)

VERSIONS: tuple[str, ...] = tuple(recipe.version for recipe in RECIPES)


def recipe(version: str) -> Recipe:
    """Returns the recipe of a version in the table."""
    for candidate in RECIPES:
        if candidate.version == version:
            return candidate
    raise UnknownVersion(f"Letta {version} is not in the testbed's table; it has {', '.join(VERSIONS)}.")


def agent_types(version: str) -> tuple[str, ...]:
    """Returns the agent types to test on a version: each has its own agent loop or is the default type."""
    return recipe(version).agent_types
