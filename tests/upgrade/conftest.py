"""What tests of upgrades share."""

from control.conftest import person as person
