"""What a machine needs once, before sessions are there: looked at, told as steps, and carried out one by one."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tmuxctl.control.machines import ssh
from tmuxctl.control.machines.facts import LINGER
from tmuxctl.errors import Failed, TmuxctlError, Unreachable
from tmuxctl.results import MachineSetup, SetupStep
from tmuxctl.timing import TIMING
from tmuxctl.transport.base import shell_word
from tmuxctl.transport.versions import OLDEST, parse_version
from tmuxctl.untrusted import read_file
from tmuxctl.value import NamedTuple, changed
from tmuxctl.vocabulary import StepState

if TYPE_CHECKING:
    from tmuxctl.machines import MachineEntry
    from tmuxctl.transport.base import Transport

MANAGERS = {
    "apt-get": "apt-get install -y tmux",
    "dnf": "dnf install -y tmux",
    "yum": "yum install -y tmux",
    "zypper": "zypper --non-interactive install tmux",
    "pacman": "pacman -S --noconfirm tmux",
    "apk": "apk add tmux",
    "pkg": "pkg install -y tmux",
    "brew": "brew install tmux",
}
"""What installs tmux, by the program of the package manager."""

LOOK = rf"""
printf '%s\n' "$("$1" -V 2>/dev/null)"
LC_ALL=C.UTF-8 locale charmap 2>/dev/null | head -n 1 | grep . || echo
{LINGER}
found=; for one in {" ".join(MANAGERS)}; do [ -n "$found" ] || ! command -v "$one" >/dev/null || found=$one; done
printf '%s\n' "$found"; id -u; id -un
case ${{XDG_STATE_HOME-}} in /*) state=$XDG_STATE_HOME ;; *) state=${{HOME-}}/.local/state ;; esac
printf '%s\n' "$state/tmuxctl/$2"; if [ -d "$state/tmuxctl/$2" ]; then echo made; else echo; fi
"""
"""Prints a line for each: the version of tmux, the character set, whether programs stay at a logout, the package manager, the
user's number and name, the folder for files, whether that is there."""

APPEND_KEY = r"""
umask 077; cd && { [ -d .ssh ] || mkdir .ssh; } && file=.ssh/authorized_keys || exit
! grep -qxF -e "$1" "$file" 2>/dev/null || exit 0
newline=; [ ! -s "$file" ] || [ -z "$(tail -c 1 "$file")" ] || newline='
'
printf '%s%s\n' "$newline" "$1" >>"$file"
"""
"""Adds a line to the keys that let a user in, in one write; not twice."""

UNDISTURBED = r"""
if command -v setsid >/dev/null; then exec setsid sh -c "$1" 2>&1; else trap '' HUP INT TERM; eval "$1" 2>&1; fi
"""
"""Runs a script to its end, also where the connection ends before."""


class Facts(NamedTuple):
    """What LOOK printed."""

    tmux: str
    charset: str
    linger: str
    manager: str
    number: str
    user: str
    folder: str
    made: str


class PreparedStep(NamedTuple):
    """A step as it is told, and what carries it out, which gives what it found."""

    step: SetupStep
    act: Callable[[], str] | None = None


class MachinePreparation:
    """One machine that is prepared: `look` says what is needed, `carry_out` does it."""

    def __init__(self, entry: MachineEntry, transport: Transport, *, install: bool = False) -> None:
        """`install`: a tmux that is missing is installed by the package manager there."""
        self.entry, self.transport, self.install = entry, transport, install
        self._planned: list[PreparedStep] = []

    def look(self) -> MachineSetup:
        """The steps, none of which is carried out; errors as of a call there."""
        status, printed = self.transport.shell(LOOK, self.entry.tmux, self.transport.socket)
        lines = printed.decode(errors="replace").split("\n")
        if status or len(lines) < len(Facts._fields):
            raise Failed(f"it cannot be looked at: the shell there ended with {status}", reason="io")
        facts = Facts(*lines[: len(Facts._fields)])
        self._planned = [*self._plan_key(), self._plan_folder(facts), self._plan_linger(facts)]
        self._planned += [self._plan_locale(facts), self._plan_tmux(facts)]
        return self._to_result(dry_run=True)

    def carry_out(self) -> MachineSetup:
        """Do what is needed; a step that fails is left, and says why. Unreachable where the connection ends."""
        for place, (step, act) in enumerate(self._planned):
            if step.state is StepState.NEEDED and act is not None:
                try:
                    ended = changed(step, state=StepState.DONE, found=act(), changed=True, command=None)
                except TmuxctlError as error:
                    if isinstance(error, Unreachable):
                        raise
                    why = error.message.removeprefix(f"{self.entry.name}: ")
                    ended = changed(step, state=StepState.LEFT, found=why, hint=error.hint or None)
                self._planned[place] = PreparedStep(ended)
        return self._to_result(dry_run=False)

    def _to_result(self, *, dry_run: bool) -> MachineSetup:
        steps = tuple(one.step for one in self._planned)
        ok = all(one.state is not StepState.LEFT or not one.required for one in steps)
        return MachineSetup(self.entry.name, ok, dry_run, steps)

    # the key

    def _plan_key(self) -> Iterator[PreparedStep]:
        if self.entry.ssh is None:
            return
        if self._is_let_in():
            yield PreparedStep(SetupStep("key", StepState.DONE, "ssh gets in without asking"))
            return
        public, private = self._find_key()
        if public:
            told = f"{public.split(' ', 2)[-1]} is added to ~/.ssh/authorized_keys there"
        else:
            told = f"{private} is made, without a passphrase, and added to ~/.ssh/authorized_keys there"
        command = None if public else f"ssh-keygen -t ed25519 -N '' -f {shell_word(private)}"
        step = SetupStep("key", StepState.NEEDED, told, command=command)
        yield PreparedStep(step, lambda: self._bring_key(public, private))

    def _is_let_in(self) -> bool:
        assert self.entry.ssh
        words = [*ssh.ssh_command(self.entry.ssh, shared=False), "true"]
        return _run(words).returncode == 0

    def _find_key(self) -> tuple[str, str]:
        """The public key that ssh would show there, empty if it has none; and the private one's path, or where one is made."""
        assert self.entry.ssh
        told = [line.partition(" ") for line in _run(["ssh", "-G", "--", self.entry.ssh]).stdout.splitlines()]
        paths = [_expand(path) for key, _, path in told if key == "identityfile"]
        for path in paths:
            if os.path.exists(path) and (line := _read_line(f"{path}.pub")):
                return line, path
        if ("identitiesonly", " ", "yes") not in told and (keys := _run(["ssh-add", "-L"])).returncode == 0:
            return keys.stdout.partition("\n")[0], ""
        free = [path for path in paths if not os.path.exists(path)]
        if not free:
            hint = f"make its public half: ssh-keygen -y -f {paths[0]} >{paths[0]}.pub" if paths else "IdentityFile"
            raise Failed("ssh has no public key to put there", reason="no_key", hint=hint)
        return "", next((path for path in free if path.endswith("ed25519")), free[0])

    def _bring_key(self, public: str, private: str) -> str:
        line = public or _make_key(private)
        status, _ = self.transport.shell(APPEND_KEY, line)
        if status:
            raise Failed("the key cannot be written there", reason="io", hint="ls -la ~/.ssh, there")
        if not self._is_let_in():
            raise Failed(
                "the key is there, and ssh still gets in by nothing that does not ask",
                reason="no_key",
                hint="a key with a passphrase belongs into an agent (ssh-add); "
                "or sshd there may look for keys elsewhere, or refuse the modes of ~ and ~/.ssh",
            )
        return "ssh gets in without asking"

    # the rest

    def _plan_folder(self, facts: Facts) -> PreparedStep:
        if facts.made:
            return PreparedStep(SetupStep("files", StepState.DONE, self.transport.home, required=True))
        step = SetupStep("files", StepState.NEEDED, f"{facts.folder} is made, for you alone", required=True)
        return PreparedStep(step, lambda: self.transport.home)

    def _plan_linger(self, facts: Facts) -> PreparedStep:
        if facts.linger != "none":
            found = "programs stay when you log out" if facts.linger else "no systemd ends programs when you log out"
            return PreparedStep(SetupStep("linger", StepState.DONE, found))
        told = "programs stay when you log out: systemd may end them without it"
        step = SetupStep("linger", StepState.NEEDED, told, command="loginctl enable-linger")
        return PreparedStep(step, lambda: self._enable_linger(facts.user))

    def _enable_linger(self, user: str) -> str:
        status, said = self.transport.shell('loginctl --no-ask-password enable-linger "$1" 2>&1', user)
        if status:
            hint = f"there: sudo loginctl enable-linger {user}"
            raise Failed(f"loginctl: {_last_line(said)}", reason="no_linger", hint=hint)
        return "programs stay when you log out"

    def _plan_locale(self, facts: Facts) -> PreparedStep:
        if facts.charset.upper() == "UTF-8":
            return PreparedStep(SetupStep("locale", StepState.DONE, "UTF-8"))
        hint = "there: locale -a lists those that there are; C.UTF-8 will do"
        return PreparedStep(SetupStep("locale", StepState.LEFT, facts.charset or "not told", hint=hint))

    def _plan_tmux(self, facts: Facts) -> PreparedStep:
        version = parse_version(facts.tmux.removeprefix("tmux "))
        if facts.tmux and not (version and version < OLDEST):
            return PreparedStep(SetupStep("tmux", StepState.DONE, facts.tmux, required=True))
        found = f"{facts.tmux} is too old: it needs 3.2 or later" if facts.tmux else f"{self.entry.tmux} was not found"
        command = self._name_installation(facts)
        left = SetupStep("tmux", StepState.LEFT, found, command=command, required=True)
        if facts.tmux or self.entry.tmux != "tmux" or command is None:
            hint = (
                f"install it there; where it is not in PATH: tmuxctl machine add {self.entry.name} --tmux /path/to/tmux"
            )
            return PreparedStep(changed(left, hint=hint, command=None))
        if not self.install:
            return PreparedStep(
                changed(left, hint=f"run that there; or: tmuxctl machine setup {self.entry.name} --install")
            )
        return PreparedStep(
            changed(left, state=StepState.NEEDED, found="tmux is installed"), lambda: self._install(command)
        )

    def _name_installation(self, facts: Facts) -> str | None:
        command = MANAGERS.get(facts.manager)
        needs_root = facts.number != "0" and facts.manager != "brew"
        return f"sudo -n {command}" if command and needs_root else command

    def _install(self, command: str) -> str:
        status, said = self.transport.shell(UNDISTURBED, command, timeout=TIMING.machine.install_seconds)
        found, printed = self.transport.shell('"$1" -V', self.entry.tmux)
        if status or found:
            hint = f"there: {command.replace('sudo -n', 'sudo')}"
            raise Failed(f"{command}: {_last_line(said) or f'exit status {status}'}", reason="no_tmux", hint=hint)
        return _last_line(printed)


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a program of ssh's here, which asks nobody."""
    try:
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMING.machine.start_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 1, "", "")
    except OSError as error:
        raise Unreachable(f"{words[0]}: {error.strerror}", reason="no_ssh", hint="install the ssh client") from None


def _expand(path: str) -> str:
    """A path as ssh has it, which takes the home of the user from the system's table."""
    return path.replace("~", pwd.getpwuid(os.getuid()).pw_dir, 1) if path.startswith("~/") else path


def _read_line(path: str) -> str:
    try:
        return read_file(path, 1 << 16, follow=True).decode(errors="replace").partition("\n")[0].strip()
    except OSError:
        return ""


def _make_key(private: str) -> str:
    """Make a pair of keys beside its place, and put both halves there; the public one."""
    folder = os.path.dirname(private)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    beside = tempfile.mkdtemp(prefix=".tmuxctl-", dir=folder)
    try:
        made = os.path.join(beside, "key")
        done = _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", made])
        if done.returncode:
            raise Failed(f"ssh-keygen: {_last_line(done.stderr.encode())}", reason="no_key", hint=f"ls -ld {folder}")
        os.rename(f"{made}.pub", f"{private}.pub")
        # fails where there is one by now: no key is ever overwritten
        os.link(made, private)
        return _read_line(f"{private}.pub")
    except OSError as error:
        raise Failed(f"{private}: {error.strerror}", reason="no_key", hint=f"ls -ld {folder}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _last_line(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else ""
