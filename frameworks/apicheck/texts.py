# SPDX-License-Identifier: Apache-2.0
"""The API of Android's releases, as the texts below a tree's prebuilts/sdk and api.tsv have it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .classfile import CheckError, Member

SURFACES = ["public", "system", "module-lib", "system-server"]
# The least that anybody asks for: what is older counts as this one.
OLDEST = 30

_TITLE = re.compile(r"((?:[\w-]+ )*)(?:class|interface|enum|@interface) (.*) \{$")
_MEMBER = re.compile(r"(ctor|method|field|enum_constant) (.*);$")
_MODIFIERS = re.compile(
    r"(public|protected|private|static|final|abstract|default|synchronized|native|transient"
    r"|volatile|strictfp|sealed|record|non-sealed|deprecated) "
)
_PRIMITIVES = {
    "void": "V",
    "boolean": "Z",
    "byte": "B",
    "char": "C",
    "short": "S",
    "int": "I",
    "long": "J",
    "float": "F",
    "double": "D",
}


@dataclass(frozen=True)
class Fact:
    """That there is a member or a class: from which level on, in which API, and who says so."""

    level: int
    surface: str
    source: str


@dataclass
class Api:
    facts: dict[Member, Fact] = field(default_factory=dict)
    parents: dict[str, set[str]] = field(default_factory=dict)

    def add(self, member: Member, fact: Fact) -> None:
        known = self.facts.get(member)
        if known is None or fact.level < known.level:
            self.facts[member] = fact

    def find(self, member: Member) -> Fact | None:
        """Where a member is declared: in its class, or in one that this inherits from."""
        owner, name, descriptor = member
        seen = set()
        waiting = [owner]
        found = []
        while waiting:
            one = waiting.pop(0)
            if one in seen:
                continue
            seen.add(one)
            if fact := self.facts.get((one, name, descriptor)):
                found.append(fact)
            if not name:
                break
            parents = self.parents.get(one, set())
            # What is in no text is an interface, or a class that only has Object above it
            waiting += sorted(parents) or ([] if one.startswith("java/") else ["java/lang/Object"])
        return min(found, key=lambda fact: fact.level, default=None)


def read_tree(aosp: Path) -> Api:
    """What prebuilts/sdk of a tree has, but for what is newer than its newest whole release."""
    api = Api()
    folder = aosp / "prebuilts/sdk"
    levels = sorted(int(one.name) for one in folder.glob("[0-9]*") if one.name.isdigit())
    if not levels or levels[-1] < OLDEST:
        raise CheckError(f"{folder} has no API of {OLDEST} or later")
    for level in levels:
        for surface in SURFACES:
            for text in sorted((folder / f"{level}/{surface}/api").glob("*.txt")):
                if not re.search(r"removed|incompatibilities", text.name):
                    source = str(text.relative_to(folder))
                    read_text(api, text.read_text(), max(level, OLDEST), surface, source)
    return api


def read_text(api: Api, text: str, level: int, surface: str, source: str) -> None:
    """Adds what a text in metalava's format has."""
    fact = Fact(level, surface, source)
    package = owner = ""
    class_variables: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("package "):
            package = _bare(line[len("package ") :]).removesuffix(" {").replace(".", "/")
        elif line.startswith("  ") and line.endswith("{"):
            if title := _TITLE.match(_bare(line.strip())):
                names, class_variables = _title_of(title[2])
                owner, *parents = [f"{package}/{names[0]}".replace(".", "$"), *names[1:]]
                api.add((owner, "", ""), fact)
                above = {_class_of(one, class_variables) for one in parents}
                api.parents.setdefault(owner, set()).update(above)
        elif line.startswith("    ") and owner:
            declared = _MEMBER.match(_bare(line.strip().partition("; //")[0].rstrip(";") + ";"))
            if declared:
                name, descriptor = _member_of(declared[1], declared[2], class_variables)
                api.add((owner, name, descriptor), fact)


def _bare(line: str) -> str:
    """Without annotations, the arguments of which may have anything in them."""
    out = ""
    at = 0
    while at < len(line):
        if line[at] == "@" and not line.startswith("@interface", at):
            at = re.compile(r"@[\w.$]+").match(line, at).end()  # type: ignore[union-attr]
            if at < len(line) and line[at] == "(":
                at = _end_of_brackets(line, at)
            while at < len(line) and line[at] == " ":
                at += 1
        elif line[at] == '"':
            at = line.index('"', at + 1) + 1 if '"' in line[at + 1 :] else len(line)
            out += '""'
        else:
            out += line[at]
            at += 1
    return out


def _end_of_brackets(line: str, at: int) -> int:
    depth = 0
    quoted = False
    for end in range(at, len(line)):
        if line[end] == '"' and line[end - 1] != "\\":
            quoted = not quoted
        elif not quoted and line[end] in "([{":
            depth += 1
        elif not quoted and line[end] in ")]}":
            depth -= 1
            if not depth:
                return end + 1
    return len(line)


def _split(text: str, separator: str) -> list[str]:
    """At separators that are not within angle brackets."""
    parts = [""]
    depth = 0
    for letter in text:
        depth += (letter == "<") - (letter == ">")
        if letter == separator and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _end_of_variables(text: str) -> int:
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if not depth:
            return at
    raise CheckError(f"no end of {text}")


def _variables(text: str) -> tuple[dict[str, str], str]:
    """The type variables at the start of a text, each with its erasure, and the rest."""
    if not text.startswith("<"):
        return {}, text
    end = _end_of_variables(text)
    variables: dict[str, str] = {}
    for one in _split(text[1:end], ","):
        name, _, bound = one.partition(" extends ")
        variables[name] = _split(bound, "&")[0] if bound else "java.lang.Object"
    return variables, text[end + 1 :].strip()


def _title_of(title: str) -> tuple[list[str], dict[str, str]]:
    """The names in a class's title: its own, and those above it; and its type variables."""
    words = _split(title, " ")
    own = words[0]
    variables: dict[str, str] = {}
    if "<" in own:
        variables, _ = _variables(own[own.index("<") :])
        own = own[: own.index("<")]
    names = [one.rstrip(",") for one in words[1:] if one not in ("extends", "implements")]
    return [own, *[part for one in names for part in _split(one, ",")]], variables


def _class_of(name: str, variables: dict[str, str]) -> str:
    return _descriptor(name, variables)[1:-1]


def _member_of(kind: str, text: str, class_variables: dict[str, str]) -> tuple[str, str]:
    """The name and the descriptor."""
    variables = dict(class_variables)
    while True:
        if text.startswith("<"):
            own, text = _variables(text)
            variables |= own
        elif modifier := _MODIFIERS.match(text):
            text = text[modifier.end() :]
        else:
            break
    if kind in ("field", "enum_constant"):
        text = text.partition(" = ")[0]
        of, name = text.rsplit(" ", 1)
        return name, _descriptor(of, variables)
    before, _, after = text.partition("(")
    arguments = [_argument(one) for one in _split(after[: after.rindex(")")], ",")]
    taken = "".join(_descriptor(one, variables) for one in arguments)
    if kind == "ctor":
        return "<init>", f"({taken})V"
    returned, name = before.rsplit(" ", 1)
    return name, f"({taken}){_descriptor(returned, variables)}"


def _argument(text: str) -> str:
    """The type of an argument, which newer texts name."""
    text = re.sub(r"^(optional )?", "", text)
    return _split(text, " ")[0].removesuffix(":")


def _descriptor(text: str, variables: dict[str, str]) -> str:
    text = text.strip().replace("...", "[]").rstrip("?!")
    dimensions = 0
    while text.endswith("[]"):
        text = text[:-2].strip().rstrip("?!")
        dimensions += 1
    text = text.partition("<")[0].strip() + (text.rpartition(">")[2] if "<" in text else "")
    seen = set()
    while text in variables and text not in seen:
        seen.add(text)
        text = variables[text].partition("<")[0]
    if text in _PRIMITIVES:
        return "[" * dimensions + _PRIMITIVES[text]
    if "." not in text or text[:1].isupper():
        text = f"java.lang.{text}"
    package = [part for part in text.split(".") if not part[:1].isupper()]
    classes = text.split(".")[len(package) :]
    return "[" * dimensions + "L" + "/".join([*package, "$".join(classes)]) + ";"


def read_facts(path: Path) -> Api:
    api = Api()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("#"):
            continue
        try:
            owner, name, descriptor, surface, level, source = line.split("\t")
            api.facts[owner, name, descriptor] = Fact(int(level), surface, source)
        except ValueError:
            raise CheckError(f"{path}:{number} is no fact") from None
    return api


def write_facts(path: Path, facts: Iterable[tuple[Member, Fact]]) -> None:
    """Replaces the facts, and leaves what is said above them."""
    said = [line for line in path.read_text().splitlines() if line.startswith("#")]
    path.write_text("\n".join([*said, *_lines(facts)]) + "\n")


def _lines(facts: Iterable[tuple[Member, Fact]]) -> Iterator[str]:
    for member, fact in sorted(facts, key=lambda one: one[0]):
        yield "\t".join([*member, fact.surface, str(fact.level), fact.source])
