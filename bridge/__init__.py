"""An OpenAI-compatible API with client-side tools in front of self-hosted Letta agents."""

__version__ = "0.1.0"
