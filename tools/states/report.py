"""What is printed of the scores: the table, the lines that must hold, and every window that is wrong, with the reasons given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from tmuxctl.evidence import FULL, NONE, PS, WCHAN, Kernel, Look
from tools.states.score import WORKING, Figures, Sample, Scored, figures

TITLES = {
    FULL: "everything readable",
    WCHAN: "without system calls (wchan)",
    PS: "without /proc, with ps",
    NONE: "without /proc and ps",
}

HEAD = (
    f"{'':30} {'by window':^31}  {'by sample':^61}\n"
    f"{'':30} {'right':>13} {'all right':>9} {'kind':>7}  {'right':>7} {'idle/asking':>11} {'kind':>7} "
    f"{'false idle':>16} {'confident':>9} {'delay':>7}"
)


def row(title: str, of: Figures) -> str:
    """One line of the table. False idle is counted over the samples in which the program worked."""
    delay = "-" if of.delay is None else f"{of.delay:.2f} s"
    windows = f"{of.right_windows}/{of.windows} {_share(of.right_windows, of.windows)}"
    false = f"{of.false_idle} of {of.working} {_share(of.false_idle, of.working)}"
    return (
        f"{title:30} {windows:>13} {_share(of.whole_windows, of.windows):>9} {_share(of.kind_windows, of.windows):>7}  "
        f"{_share(of.right, of.samples):>7} {_share(of.told, of.samples):>11} {_share(of.right_kinds, of.kinds):>7} "
        f"{false:>16} {of.confident:>9} {delay:>7}"
    )


def must_hold(level: str, of: Figures) -> list[tuple[str, bool]]:
    """The lines a change may not break, each with whether it holds."""
    if level == FULL:
        return [
            ("at least 98 % of the windows right", of.right_windows >= 0.98 * of.windows),
            ("at least 98 % of the samples right", of.right >= 0.98 * of.samples),
            ("never idle while it works", of.false_idle == 0),
            ("never surely idle where a decision is wanted", of.sure_idle == 0),
        ]
    if level == WCHAN:
        return [
            ("at least 96 % of the windows right", of.right_windows >= 0.96 * of.windows),
            ("at most 1.5 % idle while it works", of.false_idle <= 0.015 * of.working),
        ]
    few = ("at most 20 samples idle while it works", of.false_idle <= 20)
    if level == PS:
        return [
            ("at least 90 % of the windows right", of.right_windows >= 0.9 * of.windows),
            few,
            ("never surely idle while it works", of.sure_false_idle == 0),
        ]
    return [few, ("never idle with confidence while it works", of.confident == 0)]


def failures(windows: Sequence[Scored], *, verbose: bool) -> Iterator[str]:
    """Every window with a sample that is wrong in state or kind, the worst first, with what was said instead and why;
    then those in which waiting was only told late."""
    wrong = [one for one in windows if not one.samples or any(not _good(sample) for sample in one.samples)]
    late = [one for one in wrong if _late(one)]
    if verbose:
        late = []
    for one in sorted(wrong, key=lambda one: (one.right, one.kind_right, one.recording.scenario)):
        if one not in late:
            yield _title(one)
            yield from _stretches(one, verbose)
    for right, says in ((False, "too late to be right"), (True, "a little late")):
        names = [f"{_name(one)} {_settled(one):.1f} s" for one in late if one.right is right]
        if names:
            yield f"  {says}, counted from the last key or the true moment: {', '.join(names)}"


def _stretches(one: Scored, verbose: bool) -> Iterator[str]:
    runs = [list(several) for _, several in groupby(one.samples, _verdict_key)]
    bad = [several for several in runs if not _good(several[0])]
    for several in bad if verbose else bad[:3]:
        yield f"      {_stretch(one, several)}"
        if verbose:
            yield from (f"          {line}" for line in _seen(several[len(several) // 2].look))
    if len(bad) > 3 and not verbose:
        yield f"      and {len(bad) - 3} more stretches (--verbose)"


def _late(one: Scored) -> bool:
    """Waiting or the end was told after all, and nothing else wrong but before."""
    good = [_good(sample) for sample in one.samples]
    begun = good.index(True) if True in good else len(good)
    others = {sample.verdict.state for sample in one.samples[:begun]}
    return (
        one.window.truth.state in ("input", "exited")
        and all(good[begun:])
        and others <= set(WORKING)
        and begun < len(good)
    )


def _settled(one: Scored) -> float:
    first = next(sample for sample in one.samples if _good(sample))
    return first.look.at - (one.window.base if one.window.truth.since is None else one.window.truth.since)


def _share(part: int, whole: int) -> str:
    return "-" if not whole else f"{100 * part / whole:.1f} %"


def _good(sample: Sample) -> bool:
    return sample.right and sample.kind is not False


def _name(one: Scored) -> str:
    return f"{one.recording.scenario} #{one.recording.windows.index(one.window) + 1}"


def _title(one: Scored) -> str:
    truth = one.window.truth
    says = "right" if one.right and one.kind_right else "KIND" if one.right else "WRONG"
    if any(sample.false_idle for sample in one.samples):
        says += ", FALSE IDLE"
    wanted = " ".join(filter(None, (truth.state, truth.kind)))
    others = "/".join((*truth.others, *truth.other_kinds))
    right = sum(sample.right for sample in one.samples)
    kinds = sum(_good(sample) for sample in one.samples)
    return (
        f"  {_name(one)} [{truth.begin - one.window.base:.1f}-{truth.end - one.window.base:.1f} s] "
        f"{wanted}{f' (or {others})' if others else ''}: {says}; {right} of {len(one.samples)} right, {kinds} with kind"
        f"{'; hard: ' + one.recording.hard if one.recording.hard else ''}"
    )


def _verdict_key(sample: Sample) -> tuple[object, ...]:
    verdict = sample.verdict
    return (sample.right, sample.kind, verdict.state, verdict.kind, verdict.by, verdict.confidence)


def _stretch(one: Scored, several: Sequence[Sample]) -> str:
    first, last = several[0], several[-1]
    verdict = first.verdict
    said = " ".join(filter(None, (verdict.state.value, verdict.kind, verdict.detail and f"({verdict.detail})")))
    confidence = verdict.confidence.value if verdict.confidence else None
    begin, end = first.look.at - one.window.base, last.look.at - one.window.base
    return f"{begin:5.2f}-{end:5.2f} s x{len(several):<3} {said}, {confidence} by {verdict.by}: {verdict.why}"


def _seen(look: Look) -> Iterator[str]:
    """The evidence of one look, short."""
    quiet = "unknown" if look.quiet is None else f"{look.quiet:.2f} s"
    shown = f"{'' if look.visible else ' hidden'}{' alternate' if look.alternate else ''}"
    yield f"quiet {quiet}, cursor {look.x},{look.y}{shown}, left of it {look.left[-60:]!r}, title {look.title!r}"
    rows = [text for text in look.screen.split("\n") if text.strip()]
    yield from (f"| {text[:100]}" for text in rows[-4:])
    yield from _kernel(look.kernel, "")


def _kernel(kernel: Kernel | None, indent: str) -> Iterator[str]:
    if kernel is None:
        yield f"{indent}no kernel"
        return
    via = f" via {kernel.via}" if kernel.via else ""
    yield f"{indent}{kernel.tty} group {kernel.group}{via}"
    for one in kernel.programs:
        threads = [
            f"{thread.state}:{thread.call or thread.wchan}{':tty' if thread.tty else ''}{':alone' if thread.alone else ''}"
            for thread in one.threads
        ]
        counted = [f"{count}x{text}" if (count := threads.count(text)) > 1 else text for text in dict.fromkeys(threads)]
        yield (
            f"{indent}{one.name} {one.pid} {one.state}{' foreground' if one.foreground else ''} {one.level} cpu {one.cpu} "
            f"sockets {one.sockets} holds {one.holds}: {' '.join(counted)}"
        )
    if kernel.inner:
        yield from _kernel(kernel.inner, indent + "  ")


def table(rows: Iterable[tuple[str, Sequence[Scored]]]) -> Iterator[str]:
    """The head and a line for each title."""
    yield HEAD
    yield from (row(title, figures(windows)) for title, windows in rows)
