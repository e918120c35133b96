"""The alert rules and the dashboard use metrics that a server exports, and Prometheus reads them."""

import json
import re
import subprocess

import yaml
from prometheus_client import REGISTRY

# these register the metrics
import storage.replicas.replicas
import storage.runtime.prometheus  # noqa: F401
from tests.docs.pages import DOCS

ALERTS = DOCS / "monitoring" / "alerts.yml"
DASHBOARD = DOCS / "monitoring" / "grafana.json"
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


def rules():
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def expressions():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    shown = [target["expr"] for panel in panels for target in panel["targets"]]
    return [rule["expr"] for rule in rules()], shown


def test_all_metrics_are_exported():
    exported = {
        metric.name + suffix
        for metric in REGISTRY.collect()
        for suffix in SUFFIXES.get(metric.type, ())
        if metric.name.startswith("tablero_")
    }
    alerts, shown = expressions()
    for expression in (*alerts, *shown):
        used = set(re.findall(r"tablero_\w+", expression))
        assert used, expression
        assert used <= exported, expression


def test_panels_and_alerts_are_told_apart():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in rules())


def test_promtool_reads_them(require, tmp_path):
    promtool = require("promtool", "Prometheus")
    _, shown = expressions()
    recorded = [
        {
            "record": f"shown:{number}",
            "expr": expression.replace("$__rate_interval", "5m").replace("$account", ".*"),
        }
        for number, expression in enumerate(shown)
    ]
    of_dashboard = tmp_path / "dashboard.yml"
    of_dashboard.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    subprocess.run([promtool, "check", "rules", ALERTS, of_dashboard], check=True)
