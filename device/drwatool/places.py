# SPDX-License-Identifier: Apache-2.0
"""Places in a source tree, described by what is there: a function, a statement, a line.

In C, C++, Java, AIDL and Blueprint, text is compared token by token, so that spaces, line ends and
comments do not count; in other files, line by line. A place that is not found, or found more often
than it may be, is refused in words that name it.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

# The text of a file of the tree, None if it has no such file.
Reader = Callable[[str], str | None]

COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
TOKEN = re.compile(
    r"""[A-Za-z_]\w*|\d[\w.]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
    r"""|\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|&&|\|\||[-+*/%&|^<>=!]=|\S"""
)
GUARD = re.compile(r"\s*#\s*ifndef\s+(\w+)\s*\n\s*#\s*define\s+\1\s*\n")
VERBS = ("after", "before", "replace", "end_of", "after_function")
PLACE_KEYS = ("what", "file", "form", "times", "optional", "when")
FORM_KEYS = (*VERBS, "text", "function", "within", "unused", "unused_after")
# What may stand before a statement: the end of another one, a block, a label.
BETWEEN_STATEMENTS = (";", "{", "}", ":")


class PlaceError(Exception):
    """A place is not where it was looked for, or not only there."""


@dataclass(frozen=True)
class Form:
    """One of the ways in which trees have a place."""

    verb: str
    # The statement, the expression or the line; of end_of, the struct, or nothing for the
    # function's end; of after_function, the function.
    what: str
    text: str  # what is put there
    function: str = ""
    within: str = ""  # a statement of the function, to which the search is confined
    # A declaration that goes when nothing names its variable any more, and the one ahead of it.
    unused: str = ""
    unused_after: str = ""

    def __str__(self) -> str:
        words = self.what.splitlines()[0] if self.what else ""
        if self.verb == "end_of":
            there = f"{self.function}()" if self.function else "the file"
            return f"at the end of {words or there}"
        if self.verb == "after_function":
            return f"after {words}()"
        where = f" in {self.function}()" if self.function else ""
        return f"{self.verb} `{words}`{where}"


@dataclass(frozen=True)
class Place:
    """Where a patch changes a file that is there."""

    what: str
    file: str
    forms: tuple[Form, ...]
    times: tuple[int, ...] = (1,)  # how often it may be found; of an optional 0, never
    optional: bool = False
    # Of each "FILE: TEXT", what the tree has to have, and of "!FILE: TEXT" what it must lack.
    when: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


@dataclass(frozen=True)
class Placed:
    """Where a place was found."""

    place: Place
    form: Form
    lines: tuple[int, ...]  # of the tree as it was

    def __str__(self) -> str:
        lines = ", ".join(map(str, self.lines))
        return f"{self.place.file}:{lines}: {self.place.what}: {self.form}"


@dataclass(frozen=True)
class Span:
    """A part of a file, by offsets."""

    start: int
    end: int


class Source:
    """A file, with what its language says of where things are."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def line_of(self, offset: int) -> int:
        """Counts from 0."""
        return bisect_right(self._starts, offset) - 1

    def line_start(self, offset: int) -> int:
        return self._starts[self.line_of(offset)]

    def line_end(self, offset: int) -> int:
        """Behind the line's newline."""
        number = self.line_of(offset) + 1
        return self._starts[number] if number < len(self._starts) else len(self.text)

    def indentation(self, offset: int) -> str:
        start = self.line_start(offset)
        found = re.compile(r"[ \t]*").match(self.text, start)
        return found[0] if found else ""

    def find(self, form: Form) -> list[Span]:
        """Whole lines, with spaces as they come."""
        if form.verb == "end_of":
            return [Span(len(self.text), len(self.text))]
        wanted = [line.split() for line in form.what.split("\n")]
        lines = [line.split() for line in self.text.split("\n")]
        count = len(wanted)
        return [
            Span(self._starts[at], self._end_of_line(at + count - 1))
            for at in range(len(lines) - count + 1)
            if lines[at : at + count] == wanted
        ]

    def has(self, text: str) -> bool:
        return bool(self.find(Form("after", text, "")))

    def elsewhere(self, form: Form) -> str:
        return ""

    def edit(self, form: Form, spans: list[Span]) -> str:
        """The file's text with what belongs at these spans."""
        text = self.text
        for span in reversed(spans):
            start, end, new = self._edit(form, span)
            if start == end and (text[:start].endswith(new) or text.startswith(new, start)):
                raise PlaceError(f"`{form.text.strip()}` is there already, {form}")
            text = text[:start] + new + text[end:]
        return text

    def take(self, form: Form, times: tuple[int, ...]) -> str | None:
        """The file's text without what was put there; None if it is not there."""
        spans = self.find(replace(form, verb="replace", what=form.text))
        if len(spans) not in times:
            return None
        if form.verb != "replace":
            return self._without(spans)
        text = self.text
        for span in reversed(spans):
            text = text[: span.start] + form.what + text[span.end :]
        return text

    def _without(self, spans: list[Span]) -> str:
        """The file's text without these lines. The last one goes as well where it is empty."""
        text = self.text
        for span in reversed(spans):
            text = text[: span.start] + text[self.line_end(span.end) :]
        return text

    def _edit(self, form: Form, span: Span) -> tuple[int, int, str]:
        if form.verb == "replace":
            return span.start, span.end, form.text
        if form.verb == "before":
            return span.start, span.start, f"{form.text}\n"
        end = self.line_end(max(span.end - 1, span.start))
        separator = "" if end == 0 or self.text[end - 1] == "\n" else "\n"
        return end, end, f"{separator}{form.text}\n"

    def _end_of_line(self, number: int) -> int:
        """Ahead of its newline."""
        start = self._starts[number]
        found = self.text.find("\n", start)
        return found if found >= 0 else len(self.text)


class CSource(Source):
    """A file in C as the kernel writes it: functions and structs begin and end in column 0."""

    STEP = "\t"  # what a block is indented by

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._masked = COMMENT_OR_STRING.sub(_blank_comment, text)
        self._tokens = [(found[0], found.start()) for found in TOKEN.finditer(self._masked)]
        self._offsets = [offset for _, offset in self._tokens]
        self._depths = list(self._conditional_depths())

    def find(self, form: Form) -> list[Span]:
        if form.verb == "after_function" or (form.verb == "end_of" and form.function):
            bodies = self._bodies(_function_of(form))
            for body in bodies:
                self._refuse_conditional(body, form)
            return [Span(body.end - 1, body.end) for body in bodies]
        if form.verb == "end_of":
            end = self._end_of_struct(form.what)
            self._refuse_conditional(end, form)
            return [end]
        whole = [Span(0, len(self.text))]
        scopes = self._bodies(form.function) if form.function else whole
        return [span for scope in scopes for span in self._find_in(scope, form)]

    def _find_in(self, scope: Span, form: Form) -> list[Span]:
        if form.within:
            outer = self._occurrences(form.within, scope)
            if len(outer) != 1:
                return []
            scope = self._statement(outer[0], form.within)
        found = self._occurrences(form.what, scope)
        if form.verb in ("after", "before") and form.function:
            found = [self._statement(span, form.what) for span in found]
        for span in found:
            self._refuse_conditional(span, form)
        return found

    def has(self, text: str) -> bool:
        return bool(self._occurrences(text, Span(0, len(self.text))))

    def elsewhere(self, form: Form) -> str:
        """Which other functions have what was looked for."""
        if form.verb in ("end_of", "after_function") or not form.function:
            return ""
        spans = self._occurrences(form.what, Span(0, len(self.text)))
        names = dict.fromkeys(filter(None, (self._function_at(span.start) for span in spans)))
        return ", ".join(f"{name}()" for name in names if name != form.function)

    def edit(self, form: Form, spans: list[Span]) -> str:
        text = super().edit(form, spans)
        if not form.unused or form.verb != "replace":
            return text
        edited = type(self)(text)
        scope = edited._function(form.function)
        declared = edited._occurrences(form.unused, scope) if scope else []
        if scope is None or len(declared) != 1:
            return text
        name = re.split(r"\W+", form.unused.partition("=")[0].strip())[-1]
        uses = edited._occurrences(name, scope)
        if any(not declared[0].start <= use.start < declared[0].end for use in uses):
            return text
        start, end = edited.line_start(declared[0].start), edited.line_end(declared[0].end)
        return text[:start] + text[end:]

    def _edit(self, form: Form, span: Span) -> tuple[int, int, str]:
        if form.verb == "after_function":
            end = self.line_end(span.start)
            return end, end, f"{_indented(form.text, self.indentation(span.start))}\n"
        if form.verb == "end_of":
            start = self.line_start(span.start)
            text = _indented(form.text, self.indentation(span.start) + self.STEP)
            return start, start, f"{text}\n"
        indentation = self.indentation(span.start)
        if form.verb == "replace":
            text = _indented(form.text, indentation)
            return span.start, span.end, text.removeprefix(indentation)
        if form.verb == "before":
            start = self.line_start(span.start)
            return start, start, f"{_indented(form.text, indentation)}\n"
        end = self.line_end(span.end - 1)
        if self._masked[span.end : end].strip():
            raise PlaceError(f"line {self.line_of(span.end) + 1} goes on behind `{form.what}`")
        return end, end, f"{_indented(form.text, indentation)}\n"

    def take(self, form: Form, times: tuple[int, ...]) -> str | None:
        scope = self._scope_of(form)
        spans = self._occurrences(form.text, scope) if scope else []
        if not spans:
            return None
        text = self.text
        for span in reversed(spans):
            if form.verb == "replace":
                start, end = span.start, span.end
                indentation = self.indentation(start)
                new = _indented(form.what, indentation).removeprefix(indentation)
            else:
                start, end, new = self.line_start(span.start), self.line_end(span.end - 1), ""
                around = self._masked[start : span.start] + self._masked[span.end : end]
                if around.strip():
                    return None
            text = text[:start] + new + text[end:]
        return type(self)(text)._declare(form) if form.unused else text

    def _scope_of(self, form: Form) -> Span | None:
        """Where the text of a form is when it is there."""
        if form.verb == "end_of":
            end = self._end_of_struct(form.what).start
            start = self._masked.rfind(f"\n{form.what}", 0, end)
            return Span(start, end)
        if form.function:
            return self._function(form.function)
        return Span(0, len(self.text))

    def _declare(self, form: Form) -> str:
        """The text with the declaration that went, if it did."""
        scope = self._function(form.function)
        if scope is None or self._occurrences(form.unused, scope):
            return self.text
        ahead = self._occurrences(form.unused_after, scope)
        if len(ahead) != 1:
            return self.text
        end = self.line_end(ahead[0].end - 1)
        line = f"{self.indentation(ahead[0].start)}{form.unused}\n"
        return self.text[:end] + line + self.text[end:]

    def _conditional_depths(self) -> Iterator[int]:
        """How many #if each line is in."""
        depth = 0
        for line in self._masked.split("\n"):
            word = line.lstrip().removeprefix("#").lstrip() if line.lstrip()[:1] == "#" else ""
            if word.startswith("endif"):
                depth -= 1
            yield depth
            if word.startswith("if"):
                depth += 1

    def _refuse_conditional(self, span: Span, form: Form) -> None:
        """What is compiled sometimes is no place for what has to be there always."""
        base = 1 if GUARD.match(self._masked) else 0
        line = self.line_of(span.start)
        if self._depths[line] != base:
            what = form.what or f"{form.function}()"
            raise PlaceError(f"`{what}` in line {line + 1} is inside of an #if")

    def _bodies(self, name: str) -> list[Span]:
        """The bodies of the functions of a name, with their brackets."""
        body = self._function(name)
        return [replace(body, end=body.end + 1)] if body else []

    def _function(self, name: str) -> Span | None:
        """The body of a function; None if it is not defined here."""
        bodies = []
        head = re.compile(rf"^(?:[A-Za-z_].*\W)?{name}(?=\s*\()", re.MULTILINE)
        for start in head.finditer(self._masked):
            body = self._body(start.end())
            bodies += [body] if body else []
        if len(bodies) > 1:
            lines = " and ".join(str(self.line_of(body.start) + 1) for body in bodies)
            raise PlaceError(f"{name}() is there {len(bodies)} times, before lines {lines}")
        return bodies[0] if bodies else None

    def _body(self, offset: int) -> Span | None:
        """The body of the function whose parameters begin there; None if it is a declaration."""
        at = self._close(self._token_at(offset)) + 1
        while at < len(self._tokens):
            if self._is_directive(self._tokens[at][1]):
                at += 1  # what a vendor's #if says of the function's locks
                continue
            if not re.match(r"\w", self._tokens[at][0]):
                break
            at += 1
            if at < len(self._tokens) and self._tokens[at][0] == "(":
                at = self._close(at) + 1
        if at >= len(self._tokens) or self._tokens[at][0] != "{":
            return None
        return self._to_column_0(self._tokens[at][1])

    def _to_column_0(self, start: int) -> Span | None:
        end = self._masked.find("\n}", start)
        return Span(start, end + 1) if end >= 0 else None

    def _end_of_struct(self, name: str) -> Span:
        starts = list(re.finditer(rf"^{name}\s*\{{", self._masked, re.MULTILINE))
        if len(starts) != 1:
            raise PlaceError(f"{name} is there {len(starts)} times")
        at = self._token_at(starts[0].end() - 1)
        end = self._close(at)
        self._refuse_uneven(at, end, name)
        offset = self._tokens[end][1]
        if offset != self.line_start(offset):
            raise PlaceError(f"{name} has no end in column 0")
        return Span(offset, offset)

    def _function_at(self, offset: int) -> str:
        """The function that an offset is in."""
        before = self._masked.rfind("\n{", 0, offset)
        end = self._masked.find("\n}", before + 1)
        if before < 0 or end < offset:
            return ""
        heads = re.findall(r"^[A-Za-z_][^;{}#]*?(\w+)\s*\(", self._masked[:before], re.MULTILINE)
        return str(heads[-1]) if heads else ""

    def _token_at(self, offset: int) -> int:
        return bisect_right(self._offsets, offset - 1)

    def _occurrences(self, text: str, scope: Span) -> list[Span]:
        wanted = [found[0] for found in TOKEN.finditer(COMMENT_OR_STRING.sub(_blank_comment, text))]
        first, last = self._token_at(scope.start), self._token_at(scope.end)
        found = []
        for at in range(first, last - len(wanted) + 1):
            if all(self._tokens[at + number][0] == token for number, token in enumerate(wanted)):
                end, offset = self._tokens[at + len(wanted) - 1]
                found.append(Span(self._tokens[at][1], offset + len(end)))
        return found

    def _statement(self, span: Span, what: str) -> Span:
        """The whole statement that begins there; PlaceError if it is the branch of another one."""
        at = self._token_at(span.start)
        ahead = at - 1
        while ahead > 0 and self._is_directive(self._tokens[ahead][1]):
            ahead -= 1
        if at and self._tokens[ahead][0] not in BETWEEN_STATEMENTS:
            line = self.line_of(span.start) + 1
            raise PlaceError(f"`{what}` in line {line} is no statement of its own")
        end = self._statement_end(at)
        self._refuse_uneven(at, end, what)
        token, offset = self._tokens[end]
        return Span(span.start, max(span.end, offset + len(token)))

    def _refuse_uneven(self, first: int, last: int, what: str) -> None:
        """PlaceError where a branch of an #if alone has a bracket, or the end."""
        opened: list[int] = []  # the balance of brackets at each #if
        balance = 0
        uneven = False
        for at in range(first, last + 1):
            token, offset = self._tokens[at]
            if not self._is_directive(offset):
                balance += (token in "([{") - (token in ")]}")
                continue
            word = self._tokens[at + 1][0] if token == "#" else ""
            if word.startswith("if"):
                opened.append(balance)
            elif word.startswith(("el", "endif")):
                uneven |= not opened or opened[-1] != balance
                if word == "endif" and opened:
                    opened.pop()
        if uneven or opened:
            line = self.line_of(self._tokens[first][1]) + 1
            raise PlaceError(f"`{what}` in line {line} ends elsewhere by the branch of an #if")

    def _is_directive(self, offset: int) -> bool:
        """Whether a line is the preprocessor's."""
        start = self.line_start(offset)
        return self._masked[start : self.line_end(offset)].lstrip().startswith("#")

    def _statement_end(self, at: int) -> int:
        """The last token of the statement whose first one this is."""
        word = self._tokens[at][0]
        if word == "{":
            return self._close(at)
        if word in ("if", "for", "while", "switch"):
            end = self._statement_end(self._close(at + 1) + 1)
            if word == "if" and self._tokens[end + 1][0] == "else":
                return self._statement_end(end + 2)
            return end
        while self._tokens[at][0] != ";":
            at = self._close(at) if self._tokens[at][0] in "([{" else at
            at += 1
            if at >= len(self._tokens):
                raise PlaceError("a statement has no end")
        return at

    def _close(self, at: int) -> int:
        """The bracket that closes the one at this token."""
        depth = 0
        for number in range(at, len(self._tokens)):
            token = self._tokens[number][0]
            depth += (token in "([{") - (token in ")]}")
            if depth == 0:
                return number
        raise PlaceError(f"line {self.line_of(self._tokens[at][1]) + 1}: a bracket is not closed")


class BraceSource(CSource):
    """A file in Java, C++, AIDL or Blueprint: functions begin anywhere, and end with a bracket.

    Several may have one name; a place is looked for in all of them. Comments above a statement
    belong to it.
    """

    STEP = "    "

    def take(self, form: Form, times: tuple[int, ...]) -> str | None:
        if form.verb == "replace":
            return super().take(form, times)
        scopes = [Span(0, len(self.text))]
        if form.function:
            scopes = self._bodies(form.function)
        # Line by line, as comments and empty lines belong to what was put there.
        lines = Source.find(self, replace(form, verb="after", what=form.text))
        spans = [
            span
            for span in lines
            if any(each.start <= span.start and span.end <= each.end for each in scopes)
        ]
        return self._without(spans) if len(spans) in times else None

    def _edit(self, form: Form, span: Span) -> tuple[int, int, str]:
        start, end, text = super()._edit(form, span)
        if form.verb == "before":
            start = end = self._above_comments(start)
        return start, end, text

    def _above_comments(self, start: int) -> int:
        while start > 0:
            above = self.line_start(start - 1)
            if self._masked[above:start].strip() or not self.text[above:start].strip():
                break
            start = above
        return start

    def _function(self, name: str) -> Span | None:
        bodies = self._bodies(name)
        return bodies[0] if len(bodies) == 1 else None

    def _bodies(self, name: str) -> list[Span]:
        wanted = [*TOKEN.findall(name), "("]
        words = [token for token, _ in self._tokens]
        found = []
        for at in range(len(words) - len(wanted)):
            if words[at : at + len(wanted)] != wanted or words[at - 1] in (".", "->", "new"):
                continue
            brace = self._close(at + len(wanted) - 1) + 1
            # What may stand between: `const override`, `throws IOException, java.lang.Error`.
            while brace < len(words) and re.match(r"[\w.,]", words[brace]):
                brace += 1
            if brace < len(words) and words[brace] == "{":
                end = self._tokens[self._close(brace)][1]
                found.append(Span(self._tokens[brace][1], end + 1))
        return found

    def _function_at(self, offset: int) -> str:
        opened: list[int] = []  # the brackets around the offset
        for at in range(self._token_at(offset)):
            token = self._tokens[at][0]
            if token in "([{":
                opened.append(at)
            elif token in ")]}" and opened:
                opened.pop()
        for at in reversed(opened):
            name = self._name_ahead_of(at) if self._tokens[at][0] == "{" else ""
            if name:
                return name
        return ""

    def _name_ahead_of(self, brace: int) -> str:
        """The function whose body begins there; nothing for other blocks."""
        at = brace - 1
        while at > 0 and re.match(r"[\w.,]", self._tokens[at][0]):
            at -= 1
        depth = 0
        while at > 0:
            token = self._tokens[at][0]
            depth += (token in ")]}") - (token in "([{")
            if depth <= 0:
                break
            at -= 1
        if self._tokens[at][0] != "(" or at < 2:
            return ""
        name, ahead = self._tokens[at - 1][0], self._tokens[at - 2][0]
        keywords = ("if", "for", "while", "switch", "catch", "synchronized", "try")
        return name if re.match(r"\w", name) and name not in keywords and ahead != "new" else ""


def _function_of(form: Form) -> str:
    """The function whose end is looked for."""
    return form.what if form.verb == "after_function" else form.function


def _blank_comment(found: re.Match[str]) -> str:
    text = found[0]
    return text if text[0] in "\"'" else re.sub(r"[^\n]", " ", text)


def code_of(text: str) -> str:
    """C or Java without comments and blanks"""
    return "".join(COMMENT_OR_STRING.sub(_blank_comment, text).split())


def _indented(text: str, indentation: str) -> str:
    """Directives stay in column 0, and empty lines empty."""
    return "\n".join(
        line if line.startswith("#") or not line else indentation + line
        for line in text.split("\n")
    )


@lru_cache(maxsize=8)
def source(path: str, text: str) -> Source:
    if path.endswith((".c", ".h")):
        return CSource(text)
    return BraceSource(text) if path.endswith((".java", ".cpp", ".aidl", ".bp")) else Source(text)


def wanted(place: Place, read: Reader) -> bool:
    """Whether the tree is one that needs this place."""
    return all(holds(condition, read) for condition in place.when)


def holds(condition: str, read: Reader) -> bool:
    """Whether the tree has "FILE: TEXT", or lacks it, of "!FILE: TEXT"."""
    path, _, text = condition.removeprefix("!").partition(": ")
    there = read(path)
    return (there is not None and source(path, there).has(text)) != condition.startswith("!")


def put(place: Place, text: str | None) -> tuple[str, Placed]:
    """The file's text with what belongs at the place; PlaceError says what was looked for."""
    if text is None:
        raise PlaceError(f"{place}: the tree has no such file")
    there = source(place.file, text)
    try:
        found = _find(place, there)
        form, spans = found[0]
        if len(found) > 1:
            raise PlaceError(f"it is there {found[0][0]}, and {found[1][0]}")
        if len(spans) not in place.times:
            raise PlaceError(f"found {len(spans)} times, {form}, in lines {_lines(there, spans)}")
        changed = there.edit(form, spans)
    except PlaceError as error:
        raise PlaceError(f"{place}: {error}") from None
    lines = tuple(there.line_of(span.start) + 1 for span in spans)
    return changed, Placed(place, form, lines)


def taken(place: Place, text: str | None) -> dict[str, Form]:
    """The file's text without what was put at the place: each that it may have been, and by which
    form. Nothing if it is not there; several if forms have one text.
    """
    found: dict[str, Form] = {}
    if text is None:
        return found
    there = source(place.file, text)
    for form in place.forms:
        try:
            before = there.take(form, place.times)
        except PlaceError:
            continue
        if before is not None:
            found.setdefault(before, form)
    return found


def take(place: Place, text: str | None) -> str | None:
    """The file's text without what was put at the place; None if it is not there."""
    return next(iter(taken(place, text)), None)


def _find(place: Place, there: Source) -> list[tuple[Form, list[Span]]]:
    """The forms that are there, without those inside of earlier ones; of lines, the first form."""
    found: list[tuple[Form, list[Span]]] = []
    for form in place.forms:
        spans = there.find(form)
        taken = [span for _, others in found for span in others]
        spans = [span for span in spans if not any(_overlap(span, other) for other in taken)]
        if spans:
            found.append((form, spans))
            if not isinstance(there, CSource):
                break
    if found:
        return found
    looked = "; or ".join(map(str, place.forms))
    elsewhere = ", ".join(filter(None, (there.elsewhere(form) for form in place.forms)))
    hint = f"; it is in {elsewhere}" if elsewhere else ""
    raise PlaceError(f"not found: {looked}{hint}")


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _lines(there: Source, spans: list[Span]) -> str:
    return ", ".join(str(there.line_of(span.start) + 1) for span in spans)


def read_places(table: dict[str, Any]) -> tuple[Place, ...]:
    """Of a description: [[place]], and [[place.form]] where trees differ in more than a word."""
    return tuple(_read_place(entry) for entry in table.get("place", ()))


def _read_place(entry: dict[str, Any]) -> Place:
    shared = {name: value for name, value in entry.items() if name in FORM_KEYS}
    own = entry.get("form", [{}])
    unknown = set(entry) - {*PLACE_KEYS, *FORM_KEYS}
    unknown |= {name for each in own for name in each if name not in FORM_KEYS}
    if unknown:
        raise ValueError(f"nothing is known as {', '.join(sorted(unknown))}")
    forms: list[Form] = []
    for each in own:
        forms += _read_forms(shared | {"file": entry["file"]} | each)
    times = entry.get("times", 1)
    return Place(
        entry["what"],
        entry["file"],
        tuple(forms),
        tuple(times) if isinstance(times, list) else (times,),
        entry.get("optional", False),
        tuple(_listed(entry.get("when", []))),
    )


def _read_forms(entry: dict[str, Any]) -> Iterator[Form]:
    """A form for each of the functions, and of the statements, that an entry lists."""
    verbs = [name for name in VERBS if name in entry]
    if len(verbs) != 1:
        raise ValueError(f"{entry['file']}: a place has one of {', '.join(VERBS)}")
    verb = verbs[0]
    rest = {name: entry[name] for name in ("within", "unused", "unused_after") if name in entry}
    for function in _listed(entry.get("function", "")):
        for what in _listed(entry[verb]):
            yield Form(verb, what.strip("\n"), entry["text"].removesuffix("\n"), function, **rest)


def _listed(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]
