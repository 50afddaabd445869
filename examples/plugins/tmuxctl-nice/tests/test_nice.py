"""What users of the plugin can rely on. It has to be installed: `pip install -e '.[test]'`."""

import pytest
from tmuxctl_nice import transform

from tmuxctl import contract
from tmuxctl.errors import Usage
from tmuxctl.model import SessionSpec

SPEC = SessionSpec(("make", "all"), "/src")


def test_it_keeps_to_what_is_asked_of_every_plugin():
    """As `tmuxctl plugin test nice` says."""
    assert not contract.failures("nice")


def test_it_puts_nice_before_the_command():
    """With the level that was asked for."""
    assert transform(SPEC, level=15).argv == ("nice", "-n", "15", "make", "all")


@pytest.mark.parametrize("level", [0, 20, -5])
def test_it_takes_no_other_level(level):
    """Those nice(1) would round, or refuse to anyone but root."""
    with pytest.raises(Usage):
        transform(SPEC, level=level)
