"""The same tests as test_with_pexpect.py, by the pytest plugin of tmuxctl."""

from __future__ import annotations

import re

import pytest
from cases import CASES, MENU, Case


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_menu(tmuxctl, case: Case) -> None:
    app = tmuxctl(MENU, size="60x12")
    tmuxctl.expect(app).to_have_text("Settings")
    app.keys(*case.keys)
    tmuxctl.expect(app).to_have_text(re.compile(case.shown))
    app.keys("q")
    tmuxctl.expect(app).to_have_exited(0)
