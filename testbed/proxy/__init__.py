"""A proxy that counts calls and injects faults; they are described in `faults`, its use in `server`."""

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
    "ProxiedCall",
    "Cut",
    "DropResponse",
    "Fault",
    "FaultProxy",
    "Garbage",
    "Hang",
    "Latency",
    "Refuse",
    "Reset",
    "Rule",
    "Slice",
    "SlowClose",
    "Stall",
    "Status",
    "Truncate",
]
