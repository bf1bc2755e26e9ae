"""A model whose answers are dictated by the messages that it gets. `script` describes the language."""

from testbed.model.context import ShownCall, ShownMessage, shown, story
from testbed.model.records import RecordedRequest
from testbed.model.refusal import Refusal
from testbed.model.server import ScriptedModel
from testbed.model.strictness import ModelLimits

__all__ = ["ModelLimits", "RecordedRequest", "Refusal", "ScriptedModel", "ShownCall", "ShownMessage", "shown", "story"]
