"""The service: sessions, input, screens, waits, commands, lifetime."""

from tmuxctl.control.service import Control

__all__ = ["Control"]
