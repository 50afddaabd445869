import pytest
from control.agent import Agent
@pytest.mark.on("tmux","pipe")
def test_a(control, place):
    a = Agent(control, place).start(tells=True)
    print(control.screen("a").text)
    for t in ("say hello","think 1; say x","lines", "slow 40"):
        f = a.ask(t); print(repr(f.answer), f.state, f.submitted, f.source, f.usage, f.elapsed, f.by)
    print(control.screen("a").text)
    assert a.submitted
@pytest.mark.on("tmux","pipe")
def test_b(control, place):
    a = Agent(control, place).start()
    for t in ("say hello","think 1; say x","lines", "slow 40", "silent 3; say y", "tool rm x; say done"):
        f = a.ask(t, decide=("tool=allow",)); print(repr(f.answer), f.state, f.submitted, f.source, f.usage, f.elapsed, f.by)
    print(control.screen("a").text)
    assert a.submitted
