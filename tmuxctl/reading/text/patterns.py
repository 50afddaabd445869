"""What text alone argues for: prompts, questions and busy signs, and a profile's rules in their regions.

Text is the program's: it proves nothing. It says which kind of waiting this is once something better says that the
program waits, and what to guess where nothing better is to be had. Every pattern takes a time linear in its row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from tmuxctl.evidence import Look
from tmuxctl.reading.text.lazy_pattern import Pattern
from tmuxctl.value import Value
from tmuxctl.vocabulary import InputKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import Rule

BOTTOM = 15
"""Rows above which no generic pattern looks."""

LONGEST_ROW = 1000


class ScreenText(Value):
    """A look's text: the rows, the cursor's column and row, what stands left of it with the rows it wrapped from;
    `tmux` is the version that drew it, None if unknown."""

    rows: tuple[str, ...]
    x: int = 0
    y: int = 0
    left: str = ""
    title: str = ""
    tmux: tuple[int, int] | None = None

    @property
    def bare(self) -> str:
        """Left of the cursor, without blanks around it."""
        return self.left.strip()

    def bottom(self, count: int = BOTTOM) -> list[str]:
        """The last rows that are not empty below."""
        return list(self.rows[max(0, len(self.rows) - count) :])

    def below(self) -> list[str]:
        """The rows below the cursor's."""
        return list(self.rows[self.y + 1 :])

    def above(self, count: int) -> list[str]:
        """The rows above the cursor's, nearest last."""
        return list(self.rows[max(0, self.y - count) : self.y])


def read_screen(look: Look) -> ScreenText:
    """A look's screen, ready to be searched."""
    rows = [row[:LONGEST_ROW] for row in look.screen.split("\n")]
    while rows and not rows[-1]:
        rows.pop()
    left, y = look.left[:LONGEST_ROW], look.y
    # a question longer than the terminal is wide goes on below
    while 0 < y <= len(rows) and look.y - y < 3 and left.strip() and _goes_on(rows[y - 1], look.cols):
        y -= 1
        left = rows[y] + left
    return ScreenText(tuple(rows), look.x, look.y, left[-LONGEST_ROW:], look.title, look.tmux)


def _goes_on(row: str, cols: int) -> bool:
    """Whether a row may have been wrapped: it is full, and no drawn line."""
    return len(row) >= cols and row[-1] not in "─━═╌│┃║╮╯┐┘-=_▀▄█"


# A profile's rules


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """A rule's pattern, multi-line; None if it is none."""
    try:
        return re.compile(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError):
        return None


def select_region(screen: ScreenText, where: str) -> str:
    """The part of the screen a rule looks at: `screen`, `bottom:N`, `cursor-line`, `last-line`, `title`."""
    if where == "title":
        return screen.title
    if where == "cursor-line":
        return screen.rows[screen.y] if screen.y < len(screen.rows) else ""
    if where == "last-line":
        return screen.rows[-1] if screen.rows else ""
    name, _, count = where.partition(":")
    if name == "bottom" and count.isdecimal():
        return "\n".join(screen.bottom(int(count)) if int(count) else [])
    return "\n".join(screen.rows)


def find_region(screen: ScreenText, rule: Rule) -> str | None:
    """The part of the screen a rule looks at, with what narrows it; None where the rule does not count at all."""
    if rule.title and not fits(rule.title, screen.title):
        return None
    where = select_region(screen, rule.where)
    begin = compile_pattern(rule.begin) if rule.begin else None
    if begin is None:
        return where
    rows = where.split("\n")
    at = next((y for y in range(len(rows) - 1, -1, -1) if begin.search(rows[y])), None)
    return None if at is None else "\n".join(rows[at:])


class RuleMatch(Value):
    """A profile's rule that fits, where it was found and what it found."""

    rule: Rule
    region: str
    found: re.Match[str]

    @property
    def row_start(self) -> int:
        """Where in the region the row begins that it was found in."""
        return self.region.rfind("\n", 0, self.found.start()) + 1


def find_match(rules: Iterable[Rule], screen: ScreenText) -> RuleMatch | None:
    """The first of these rules that fits."""
    for rule in rules:
        pattern = compile_pattern(rule.re)
        where = find_region(screen, rule)
        found = pattern.search(where) if pattern and where is not None else None
        if found and where is not None and not fits(rule.unless, where):
            return RuleMatch(rule, where, found)
    return None


NUMBERED_ROW = Pattern(r"\W{0,8}\d{1,2}[.)] ")


def counts_options(match: RuleMatch) -> bool:
    """The row of a match counts something: `❯ 1. Yes`."""
    return NUMBERED_ROW.match(match.region[match.row_start :][:LONGEST_ROW]) is not None


def fits(pattern: str | None, where: str) -> bool:
    """Whether a profile's single pattern (of a title) fits."""
    known = compile_pattern(pattern) if pattern else None
    return bool(known and known.search(where))


# Questions, left of the cursor

SAID = r"(?: ?[\[(] ?(?:default\w{0,3}[:= ]{1,3})?\w{1,6} ?[\])])?"
"""Behind the answers there are, the one that Enter alone gives: `(yes/no) [no]`."""

YES, NO = r"\[?[yjso](?:es|a|i)?\]?", r"\[?n(?:o|ein|on)?\b\]?"
OR = r"(?: ?[/|,] ?| or )"
CONFIRM = Pattern(
    rf"(?P<answers>[\[(<] ?(?:{YES}{OR}{NO}|{NO}{OR}{YES})(?:[/|,][^\n]{{0,40}})?[\])>]"
    rf"|\b(?:y/n|n/y|yes/no|no/yes)(?:/\w)*\b){SAID}[^\n\w]{{0,4}}(?:\w{{0,5}})$",
    re.IGNORECASE,
)
"""`[Y/n]`, `(yes/no/[fingerprint])?`, `(y or n)`, `[N/y]`, `y/n/q:`; up to a word typed behind it."""

ASSUMED = Pattern(
    r"(?:\?\s{0,2}[\[(] ?(?:y|yes|n|no) ?[\])]|[\[(] ?(?:y|yes|n|no) ?[\])] ?\?)[\s:>]{0,3}\w{0,5}$", re.IGNORECASE
)
"""`Is this OK? (yes)`, `Proceed [y]?`: yes or no, of which only the one is named that Enter alone gives."""

DEFAULT = Pattern(
    r"(?:\bdefaults?(?: is|[:= ]){1,3}['\"]?(?P<told>[\w.+-]{1,20})['\"]?[\])]?|[\[(] ?(?P<alone>[\w.+-]{1,20}) ?[\])])"
    r"[\s?:>]{0,4}$",
    re.IGNORECASE,
)
"""What Enter alone gives, at the end of a question: `[6]`, `(y)`, `(1-4, default 2):`."""

LETTERS = Pattern(r"\[([A-Za-z0-9?](?:,[A-Za-z0-9?/!^$+-])+)\]\??:? ?\w?$")
"""`[y,n,q,a,d,e,?]?`: one letter for each answer."""

SLASHED = Pattern(r"[\[(]([A-Za-z0-9?](?:/[A-Za-z0-9?]){2,})[\])](?: ?\[[\w= ]{1,20}\])? ?[?:]{0,2} ?\w?$")
"""`(Y/I/N/O/D/Z) [default=N] ?`: the same with strokes."""

SPELLED = Pattern(r"[\[(]\w[\])][\w' -]{1,20}(?:[/,] ?[\[(]\w[\])][\w' -]{1,20})+(?:\[(\w+)\])?:? ?\w?$")
"""`(Y)es/(N)o/(D)on't ask again [Yes]:`, `[O]pen Read-Only, (E)dit anyway:`: the letter of each answer in brackets."""

DOTTED = Pattern(r"\w ?\?\.{2,3}$")
"""`rm a b?...`, `rm a ?...`: yes or no."""

KEYS = Pattern(
    r"\b(?:press|hit|strike|push|type|tap)\b[^\n]{0,30}\b(?:enter|return|any key|a key|space|spacebar|key)\b[^\n]{0,50}$"
    r"|\bpress any\b|\b(?:any key|enter) to (?:continue|proceed|exit|quit|close|return|go on)\b[^\n]{0,20}$",
    re.IGNORECASE,
)

CONFIRMS = Pattern(
    r"\bto (?:confirm|select|accept|submit|apply|approve|allow|send|choose|agree|install|delete)\b", re.I
)
"""What Enter would do to a choice that stands elsewhere: no mere pause."""

MORE = Pattern(r"--\s?More\s?--|\(END\)|^lines \d+-\d+|^:$|--Type <RET> for more|\bpress h for help or q to quit", re.I)
"""What pagers write at the bottom."""

SECRET = Pattern(
    r"(?:pass(?:word|phrase|code|wd)|\bpin\b|\botp\b|one-time|verification code|\bsecret\b|\btoken\b|api key)[^\n]{0,60}[:?]\s?$",
    re.IGNORECASE,
)

STARS = Pattern(r"[ \t]?[*•●∙]{1,80}$")
"""What a field shows of a secret that is written in it."""

SURELY = Pattern(
    r"\b(?:are you sure|do you (?:want|wish|really)|would you like|shall (?:i|we)|is this (?:ok|correct)|continue|proceed"
    r"|overwrite|replace|remove|delete|accept|confirm|really \w+)\b[^\n]{0,80}\?$",
    re.IGNORECASE,
)
"""A question that wants yes or no without saying so."""

ASKED_FOR = Pattern(
    r"\b(?:enter|your|choose|choice|select|selection|pick|option|type|specify|input|user ?name|user|login|name|e-?mail|answer"
    r"|which|what|where|who|how many|please|number|path|file|directory|host|port|url|value)\b[^\n]{0,60}[:?]$",
    re.IGNORECASE,
)
ASSUMED_TEXT = Pattern(r" ?[\[(][^\n\[\]()]{1,60}[\])]:?$")
"""The answer that a field begins with: `package name: (shop)`."""

NAME = Pattern(r"\b(?:user ?name|login|password|passphrase|enter|type)\b[^\n]{0,80}[:?]$", re.IGNORECASE)
"""`Username for 'https://host':` is written by those who ask for it."""

DOING = Pattern(r"^\W*\w+ing\b", re.IGNORECASE)
"""`Computing the answer:` tells what is being done, and asks for nothing."""

# Prompts, left of the cursor

ENDS = Pattern(
    r"(?:(?<!#)#|%|\$|(?<![=-])>|(?<![=-])[=-]>|[❯»λ➜›⟩‣▸]"
    r"|^\(\w*[A-Za-z]\w*\)|^In ?\[\d+\]:|^ {0,8}\.\.\.[:>]?|^\?-|^[:*+&@?])$"
)
"""How prompts end."""

PROGRESS = Pattern(r"(?:^|[\s(\[:=|])\d{1,3}(?:[.,]\d+)?\s?%$|#{3,}|={3,}|-{4,}>|█{2,}|\.{4,}$")
"""What ends like a prompt and tells how far something has come."""

MIDDLE = Pattern(
    r"(?:^|[^=\s-])(?:[>$#❯»λ➜›]|(?<=[^\d\s])%)\s+\S|^\(\w*[A-Za-z]\w*\)\s+\S|^In ?\[\d+\]:\s+\S|^[>❯»›➜]\s*\S"
)
"""A prompt with something typed behind it."""

HALF = Pattern(r"^(?P<prompt>\(\w*[A-Za-z]\w*\)|In ?\[\d+\]:|.{0,80}?(?:[>$#❯»λ➜›]|(?<=[^\d\s])%))\s+\S")

LABEL = Pattern(r"[:?\])}]$|^\? \S")
"""`Name:`, `[default]`, and what libraries of questions write: `? Package name`."""

CONTINUED = Pattern(
    r"^(?:\.\.\.(?:>|:)?(?:\s|$)| {1,8}\.\.\.[:>]|[\w@]{0,40}[-('\"*$][#>](?:\s|$)|'[>]| {2,10}[-'\"`]>"
    r"|(?:[a-z]{1,12} ){0,6}(?:[bdc]?quote|heredoc|cmdsubst|subsh|pipe|cmdor|cmdand|for|while|until|if|then|else|case|function"
    r"|cursh|braceparam)>|>>(?:\s|$)|\+(?:\s|$)|\S{1,60}:\d+[*\"'\]](?:\s|$))"
)
"""The second prompts that tell themselves from every first one."""

SECOND = Pattern(r"^>(?:\s|$)")
SHELL_PROMPT = Pattern(r"[$#%❯➜λ]$")
SHELL_ROW = Pattern(r"^.{0,80}?[$#%❯➜λ]\s+\S")

REPL = Pattern(
    r"(?:>>>|\.\.\.|^In ?\[\d+\]:|^\(\w+\)|=[#>*!^]|^[\w.@-]{0,40}>|:\d+(?::\d+)?[>*]|DB<+\d+>+|\w\(\d+\)>|^\?-|^[*:+?])$"
)

WORDS = 5
LONGEST_PROMPT = 120


def ends_like_prompt(left: str) -> bool:
    """The text ends as prompts do."""
    bare = left.strip().lstrip("│┃| ")
    return bool(ENDS.search(bare)) and not PROGRESS.search(bare)


def has_text_behind_prompt(left: str) -> bool:
    """The text looks like a prompt with something typed behind it."""
    return bool(MIDDLE.search(left.strip().lstrip("│┃| ")))


def is_likely_prompt(left: str) -> bool:
    """The text can be taken for a prompt though nothing but the text says so: short, and no sentence."""
    bare = left.strip().lstrip("│┃| ")
    return (
        len(bare) <= LONGEST_PROMPT and len(bare.split()) <= WORDS and ends_like_prompt(bare) and not DOING.search(bare)
    )


def is_shell_prompt(left: str) -> bool:
    """The text is a prompt as shells write them, with or without a command behind it."""
    return bool(SHELL_PROMPT.search(extract_prompt(left) or ""))


def is_likely_command_line(left: str) -> bool:
    """The same for a prompt with something typed behind it."""
    prompt = extract_prompt(left)
    return has_text_behind_prompt(left) and prompt is not None and is_likely_prompt(prompt)


def asks_for_name(left: str) -> bool:
    """The text asks for a name or secret, in the words that are usual for it."""
    bare = left.strip()
    return bool(NAME.search(bare)) and not DOING.search(bare)


def names_answers(left: str) -> bool:
    """The text names the answers it takes, as only a text that asks does."""
    return any(pattern.search(left.strip()) for pattern in (CONFIRM, LETTERS, SLASHED, SPELLED))


def wants_yes_or_no(left: str) -> bool:
    """The text asks whether to go on, with or without the answers that it takes."""
    bare = left.strip()
    return names_answers(bare) or bool(SURELY.search(bare))


def is_library_question(left: str) -> bool:
    """The text is written as libraries of questions do: `? Package name`."""
    return left.strip().startswith("? ")


def asks_for(left: str) -> bool:
    """The text is the label of a field: it names what is to be written, with or without what Enter alone gives."""
    bare = left.strip()
    return bool(ASKED_FOR.search(ASSUMED_TEXT.sub("", bare))) and not DOING.search(bare)


def asks_for_secret(left: str) -> bool:
    """The text asks for a secret, or is such a question with stars for what was typed behind it."""
    return bool(SECRET.search(STARS.sub("", left.rstrip())))


def is_pause(left: str) -> bool:
    """The text waits for any key, and for no choice."""
    return bool(KEYS.search(left)) and not CONFIRMS.search(left)


def is_likely_question(left: str) -> bool:
    """The text can be taken for a question though nothing but the text says so."""
    bare = left.strip()
    if DOING.search(bare):
        return False
    return (
        names_answers(bare)
        or is_pause(bare)
        or asks_for_secret(bare)
        or any(pattern.search(bare) for pattern in (ASSUMED, SURELY, ASKED_FOR, MORE))
    )


def ends_like_label(left: str) -> bool:
    """The text ends as labels of input do: `Name:`, `[default]`."""
    return bool(LABEL.search(left.strip()))


def is_continued(screen: ScreenText, *, shell: bool) -> bool:
    """A second prompt stands left of the cursor: more of the same input is wanted."""
    bare = screen.left.strip("│┃|").rstrip()
    if CONTINUED.search(bare):
        return not shell or not bare.startswith("+")
    if not SECOND.search(bare):
        return False
    # a bare `>` is some programs' first prompt: a second one stands below a command line that goes on
    return shell and any(SHELL_ROW.search(row) for row in screen.above(BOTTOM))


TYPED = re.compile(r" \S")
"""Where a prompt ends and what is typed behind it begins."""


def is_indented_below_prompt(screen: ScreenText, prompts: Iterable[Rule]) -> bool:
    """What is typed goes on below its prompt, at least as far from the edge as that is wide: the continuation of shells
    that show no second prompt. Without any rules a prompt is what ends like one."""
    left = (screen.rows[screen.y] if screen.y < len(screen.rows) else "")[: screen.x]
    indent = len(left) - len(left.lstrip()) if left.strip() else screen.x
    first = next((row for row in reversed(screen.above(BOTTOM)) if row[:2].strip()), "")
    known = [found for rule in prompts if (found := compile_pattern(rule.re))]
    begins = [first[:width] for width in range(2, indent + 1) if TYPED.match(first, width - 1)]
    return any(
        any(pattern.search(begin) for pattern in known) if known else ends_like_prompt(begin) for begin in begins
    )


def extract_prompt(left: str) -> str | None:
    """The prompt's text alone, without what is typed behind it."""
    bare = left.strip().strip("│┃|").strip()
    if not bare:
        return None
    if not ENDS.search(bare) and (half := HALF.search(bare)):
        return half["prompt"].strip()
    return bare


# Signs of a whole screen

WORKING = Pattern(
    r"\b(?:esc|escape|ctrl[-+ ]?c|\^c|interrupt)\b[^\n]{0,12}\bto (?:interrupt|stop|abort)\b"
    r"(?! (?:(?:the|a|an|this|your) )?(?:current )?(?:expression|statement|input|line)\b)"
    r"|\b(?:esc|ctrl[-+ ]?c)\b[^\n]{0,12}\bto cancel\b[^\n]{0,20}\b\d+s\b|\b\d+s\b[^\n]{0,20}\besc to cancel\b"
    r"|^\s{0,8}[⠁-⣿◐◓◑◒◴◷◶◵✢✳✶✻✽·] ?\S{1,40}(?:…|\.\.\.)"
    r"|\b(?:thinking|working|pondering|running|generating|loading|waiting for data|please wait)(?:…|\.\.\.)\s*(?:\(|$)",
    re.IGNORECASE,
)
"""What programs that keep listening show while they work: not what a key does to an expression that is being written."""

WORKING_ROWS = 12

WORKING_TITLE = Pattern(r"^[⠁-⣿◐◓◑◒◴◷◶◵]\s|\b(?:working|thinking|running|generating)(?:…|\.\.\.)", re.IGNORECASE)
"""The same in a title: a spinner, or what it is doing."""

BUTTON = Pattern(
    r"[<\[] {0,6}(yes|no|ok|okay|cancel|continue|abort|retry|ignore|back|next|finish|done)\b {0,6}[>\]]", re.I
)

LEGEND = Pattern(r"(?:\^[A-Z\\_]|\bF\d{1,2}|\bM-\w)[ :=]?[A-Z]\w+")
"""A key and what it does: `^X Exit`, `F10Quit`."""

SAVES = Pattern(r"\b(?:Write ?Out|Save)\b")

RULER = Pattern(
    r"^-- (?:INSERT|VISUAL|REPLACE|NORMAL)|\d+,\d+(?:-\d+)?\s+(?:All|Top|Bot|\d+%)$|^-[-U:*%]{2,6}[-\s]|^\"[^\"]+\" .{0,40}\d+[L,]"
)
FILLERS = 3
"""Rows of `~` from which on they are an editor's."""


def find_busy_sign(screen: ScreenText) -> str | None:
    """The row at the bottom, or the title, that shows that the program works."""
    if WORKING_TITLE.search(screen.title):
        return screen.title.strip()
    return next((row.strip() for row in screen.bottom(WORKING_ROWS) if WORKING.search(row)), None)


def find_full_screen_sign(screen: ScreenText) -> InputKind | None:
    """EDITOR or TUI where the screen itself shows a full-screen program that takes keys."""
    last = screen.rows[-1] if screen.rows else ""
    if sum(row == "~" for row in screen.rows) >= FILLERS or RULER.search(last):
        return InputKind.EDITOR
    legends = [row for row in screen.bottom(3) if len(LEGEND.findall(row)) >= 3]
    if legends:
        return InputKind.EDITOR if any(SAVES.search(row) for row in legends) else InputKind.TUI
    return None


def has_question_at_bottom(screen: ScreenText) -> bool:
    """A question stands in one of the last rows: what is written for it is drawn, without a cursor."""
    rows = [row.strip(" \t│┃║|└╰") for row in screen.bottom(5)]
    return any(row.endswith("?") for row in [row for row in rows if row][-2:])


def is_boxed(screen: ScreenText) -> bool:
    """The cursor stands inside a drawn box."""
    row = screen.rows[screen.y] if screen.y < len(screen.rows) else ""
    if row.lstrip()[:1] in ("│", "┃", "║", "▌"):
        return True
    above, below = screen.above(4), screen.below()[:4]
    return any(row.lstrip()[:1] in ("╭", "┌", "╔") for row in above) and any(
        row.lstrip()[:1] in ("╰", "└", "╚") for row in below
    )


def is_framed(screen: ScreenText) -> bool:
    """A box is drawn at the bottom, as in programs that lay out their own screen."""
    return any(row.lstrip()[:1] in ("╭", "╰", "│", "┃", "╔", "╚", "║") for row in screen.bottom(WORKING_ROWS))


def let_blanks_end_rows(pattern: str) -> str:
    """A regular expression that ends in blanks so that it matches at the end of a row, too, where no blanks are kept: `>>> `
    stands there as `>>>`. Others as they are."""
    kept = pattern.rstrip(" ")
    blanks = len(pattern) - len(kept)
    escaped = (len(kept) - len(kept.rstrip("\\"))) % 2
    if not (blanks and kept) or escaped or re.search(r"\(\?[a-z]*x", pattern):
        return pattern
    return f"{kept}(?: {{{blanks}}}|$)"
