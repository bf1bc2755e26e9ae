"""Gives the commands the settings and the parts of the bridge."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from bridge.config import Settings
from bridge.operation.parts import Parts


class Service:
    """Makes the settings and the parts once, when a command first uses them. Some commands need neither."""

    def __init__(self, settings: Callable[[], Settings], parts: Callable[[Settings], Parts]) -> None:
        self._make_settings = settings
        self._make_parts = parts

    @cached_property
    def settings(self) -> Settings:
        return self._make_settings()

    @cached_property
    def parts(self) -> Parts:
        return self._make_parts(self.settings)
