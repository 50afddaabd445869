"""A plugin of mypy: which result an operation gives is told by its options, so that its callers need not ask.

`new` gives a Plan with `dry_run=True`, `wait` gives Waits with `any` or `all`, and `read` and `log` an iterator with
`follow=True`. Overloads would have to repeat the options, which are declared once, in `control.service`.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.nodes import ArgKind
from mypy.plugin import MethodContext, Plugin
from mypy.types import Instance, LiteralType, Type, UnionType, get_proper_type

CONTROL = "tmuxctl.control.service.Control."
OPTIONS = {"new": ("dry_run",), "wait": ("any", "all"), "read": ("follow",), "log": ("follow",)}
"""The options of each operation that choose the second of its results."""


class Results(Plugin):
    """The result of a call of these operations, by its options."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        if fullname.startswith(CONTROL) and fullname.removeprefix(CONTROL) in OPTIONS:
            names = OPTIONS[fullname.removeprefix(CONTROL)]
            return lambda call: _choose_result(call, names)
        return None


def plugin(_version: str) -> type[Plugin]:
    """What mypy asks for."""
    return Results


def _choose_result(call: MethodContext, names: tuple[str, ...]) -> Type:
    results = get_proper_type(call.default_return_type)
    if not isinstance(results, UnionType):
        return results
    first, second = results.items
    given = [_chooses_second(call, name) for name in names]
    if None in given:
        return results
    return second if any(given) else first


def _chooses_second(call: MethodContext, name: str) -> bool | None:
    """None where only a run can tell: a value that is not known, or an option that is unpacked."""
    position = call.callee_arg_names.index(name)
    types, kinds = call.arg_types[position], call.arg_kinds[position]
    if not types or kinds[0] == ArgKind.ARG_STAR2:
        # unpacked options are for tests that try several values of others
        return False
    value = get_proper_type(types[0])
    literal = value.last_known_value if isinstance(value, Instance) else None
    if isinstance(literal, LiteralType) and isinstance(literal.value, bool):
        return literal.value
    return None if isinstance(value, Instance) and value.type.fullname == "builtins.bool" else True
