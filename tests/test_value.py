"""Values behave as frozen dataclasses do."""

from __future__ import annotations

import collections
import copy
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from tmuxctl.model import SessionSpec, Size
from tmuxctl.value import NamedTuple, Value


class Point(Value):
    x: int
    y: int = 7


def test_fields_come_in_order_with_their_defaults() -> None:
    assert (Point(1).x, Point(1).y, Point(1, 2).y, Point(y=3, x=4).x) == (1, 7, 2, 4)
    assert repr(Point(1)) == "Point(x=1, y=7)"


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"z": 2}), ((1,), {"x": 1})])
def test_a_wrong_call_is_a_type_error(values, named) -> None:
    with pytest.raises(TypeError):
        Point(*values, **named)


def test_values_are_frozen_equal_and_hashable() -> None:
    with pytest.raises(AttributeError):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del Point(1).x
    assert Point(1, 2) == Point(1, 2) != Point(1, 3)
    assert len({Point(1, 2), Point(1, 2)}) == 1
    assert Size(1, 2) != Point(1, 2)


def test_dataclasses_know_them() -> None:
    spec = SessionSpec(("cat",), "/")
    assert is_dataclass(spec)
    assert [one.name for one in fields(Point)] == ["x", "y"]
    changed = replace(spec, argv=("nice", *spec.argv))
    assert (changed.argv, changed.cwd, spec.argv) == (("nice", "cat"), "/", ("cat",))


class Pair(NamedTuple):
    """Two of a kind."""

    left: int
    right: int = 7

    @property
    def total(self) -> int:
        """Both."""
        return self.left + self.right


def test_a_value_that_is_a_tuple_is_a_named_tuple() -> None:
    declared: Any = collections.namedtuple("Pair", ("left", "right"), defaults=(7,))  # type: ignore[name-match]
    pair: Any = Pair(1)
    assert pair == declared(1) == (1, 7)
    assert (pair.total, repr(pair), pair._replace(right=2)) == (8, "Pair(left=1, right=7)", (1, 2))
    assert (type(pair).__mro__[-2], Pair._fields) == (tuple, declared._fields)
    assert (Pair.__doc__, Pair.__module__, Pair.__qualname__) == ("Two of a kind.", __name__, "Pair")
    assert Pair.__annotations__ == {"left": "int", "right": "int"}
    assert copy.deepcopy(pair) == pair
    with pytest.raises(AttributeError):
        pair.left = 2
    with pytest.raises(TypeError):
        type(pair)()
