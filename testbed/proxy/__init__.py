"""A proxy that counts calls and injects faults. `faults` describes the faults, `server` the use of the proxy."""

from testbed.proxy.calls import ProxiedCall
from testbed.proxy.faults import (
    After,
    Bandwidth,
    Before,
    Between,
    Cut,
    DropResponse,
    Fault,
    Garbage,
    Hang,
    Latency,
    Refuse,
    Reset,
    Slice,
    SlowClose,
    Stall,
    Status,
    Truncate,
)
from testbed.proxy.rules import Rule
from testbed.proxy.server import FaultProxy

__all__ = [
    "After",
    "Bandwidth",
    "Before",
    "Between",
    "Cut",
    "DropResponse",
    "Fault",
    "FaultProxy",
    "Garbage",
    "Hang",
    "Latency",
    "ProxiedCall",
    "Refuse",
    "Reset",
    "Rule",
    "Slice",
    "SlowClose",
    "Stall",
    "Status",
    "Truncate",
]
