"""The dashboard, the alerts and their page name only metrics that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families

DOCS = Path(__file__).parent.parent / "docs"
NAME = re.compile(r"\bbridge_[a-z_]+[a-z]\b")


@pytest.fixture
def names(client: FlaskClient) -> set[str]:
    families = {family.name for family in text_string_to_metric_families(client.get("/metrics").text)}
    # Several workers have no times of creation.
    return {name for name in families if not name.endswith("_created")}


def named_in(text: str) -> set[str]:
    """Returns the names of metrics, without the suffixes of their samples."""
    return {re.sub(r"_(total|bucket|count|sum)$", "", name) for name in NAME.findall(text)}


def test_the_dashboard_shows_every_metric(names: set[str]) -> None:
    board = json.loads((DOCS / "grafana.json").read_text())
    shown = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert named_in(" ".join(shown)) == names
    assert all(expression.count("(") == expression.count(")") for expression in shown)


def test_the_alerts_use_existing_metrics(names: set[str]) -> None:
    (group,) = yaml.safe_load((DOCS / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]:
        assert {"alert", "expr", "labels", "annotations"} <= rule.keys()
        assert named_in(rule["expr"]) <= names
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_the_page_lists_every_metric(names: set[str]) -> None:
    assert named_in((DOCS / "watch.md").read_text().partition("## Logs")[0]) == names
