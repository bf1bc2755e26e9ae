"""Stubs made before. Clients send the same tools with every request, and to make them takes longer than all else."""

from __future__ import annotations

import marshal
import threading
from collections import OrderedDict
from collections.abc import Hashable

from bridge.stubs.checks import Limits
from bridge.stubs.converter import USUAL_LIMITS, make_stub
from bridge.turn import SchemaForm, Stub, StubKind, ToolSpec

MOST = 1024
# In bytes; a larger schema is rare and makes the memory that is taken hard to foresee.
LARGEST = 16_000


class RememberedStubs:
    """Makes stubs, and gives back those that it made. Used by many threads."""

    def __init__(self, limits: Limits = USUAL_LIMITS) -> None:
        self._limits = limits
        self._made: OrderedDict[Hashable, Stub] = OrderedDict()
        self._lock = threading.Lock()

    def stub(self, spec: ToolSpec, form: SchemaForm, kind: StubKind, where: str) -> Stub:
        """As `make_stub` does. A refusal names its place, so it is found anew each time."""
        # Not a comparison of values: to Python 1, 1.0 and True are equal.
        schema = marshal.dumps(None if spec.parameters is None else {**spec.parameters}, 2)
        key = spec.name, spec.description, spec.strict, schema, form, kind
        with self._lock:
            known = self._made.get(key)
            if known is not None:
                self._made.move_to_end(key)
                return known
        made = make_stub(spec, form, kind=kind, where=where, limits=self._limits)
        if len(schema) + len(spec.description) <= LARGEST:
            with self._lock:
                self._made[key] = made
                while len(self._made) > MOST:
                    self._made.popitem(last=False)
        return made
