"""A model whose answers are dictated by the messages it gets; the language is described in `script`."""

from testbed.model.context import Shown, ShownCall, shown, story
from testbed.model.records import Recorded
from testbed.model.refusal import Refusal
from testbed.model.server import ScriptedModel
from testbed.model.strictness import Limits

__all__ = ["Limits", "Recorded", "Refusal", "ScriptedModel", "Shown", "ShownCall", "shown", "story"]
