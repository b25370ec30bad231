# SPDX-License-Identifier: Apache-2.0
"""Checks the build graph of a ROM's tree: this repository at vendor/drwa beside patched projects.

Of what Soong and the product configuration refuse at analysis, it looks for what concerns DRWA's
modules: names that are defined twice, that nothing defines, or that may not be named from there.
"""

import json
import os
import re
import shutil
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from drwatool import blueprint
from drwatool.blueprint import Found, Module, Progress, Reader, folder_of, strings
from drwatool.trees import TOP, Project

# Where an AOSP tree holds this repository; makefiles and Soong know it by this name.
PLACE = "vendor/drwa"
TESTS = f"{PLACE}/cts_tests"
# What a build reads of it.
FOLDERS = ("cts_tests", "device", "frameworks", "netd_patches", "sepolicy")
PLATFORM_MODULES = TOP / "device/platform_modules.toml"
# repo links it into every tree that can be built.
WHOLE_TREE = "build/envsetup.sh"
NAMESPACE = "soong_namespace"
PACKAGE = "package"
TEST_MAPPING = "TEST_MAPPING"
LICENSES = "default_applicable_licenses"
# What is read of modules that are neither ours nor patched.
PROPERTIES = (
    "name",
    "defaults",
    "visibility",
    "defaults_visibility",
    "default_visibility",
    "imports",
)
# What the properties of our modules name: other modules, …
MODULES = frozenset(
    [
        "apex_available",
        "default_applicable_licenses",
        "defaults",
        "export_static_lib_headers",
        "header_libs",
        "libs",
        "license_kinds",
        "licenses",
        "required",
        "shared_libs",
        "static_libs",
        "whole_static_libs",
    ]
)
# … files and folders, or with a colon in front modules, …
FILES = frozenset(
    [
        "data",
        "exclude_srcs",
        "export_include_dirs",
        "license_text",
        "main",
        "manifest",
        "resource_dirs",
        "src",
        "srcs",
        "test_config",
    ]
)
# … or neither.
OTHERS = frozenset(
    [
        "cflags",
        "default_visibility",
        "defaults_visibility",
        "installable",
        "lint",
        "min_sdk_version",
        "name",
        "platform_apis",
        "product_specific",
        "sdk_version",
        "stem",
        "sub_dir",
        "system_ext_specific",
        "test_suites",
        "visibility",
    ]
)
SUBPACKAGES = "__subpackages__"
SUITES = frozenset({"device-tests", "general-tests", "vts"})
# Suites from which TEST_MAPPING files are served.
MAPPED_SUITES = frozenset({"device-tests", "general-tests"})
# Options of test configurations that name what a module installs, with what follows the name.
INSTALLED = {"test-file-name": ".apk", "jar": ".jar"}
PRODUCT_VARIABLE = re.compile(
    r"^\s*(PRODUCT_PACKAGES\w*|PRODUCT_SYSTEM_SERVER_JARS\w*)\s*[:+?]?=(.*)$"
)
# A call of make's, with one in it: make alone knows its words.
MAKE_CALL = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)")
# What a jar of the system server has to say of itself, by the partition that it is listed for.
PARTITIONS = {"system_ext": "system_ext_specific", "product": "product_specific"}
OURS = re.compile("drwa", re.IGNORECASE)
SAY_AFTER_S = 5


@dataclass(frozen=True)
class Problem:
    """Something that ends a build, or leaves something out of it."""

    what: str
    advice: str


@dataclass(frozen=True)
class Result:
    """What came of looking at a tree."""

    problems: list[Problem]
    # Files that the parser could not read, and that may define or name anything.
    unreadable: list[str]
    summary: str
    # Names of the platform's modules that were taken from the table, for want of the tree's own.
    from_table: frozenset[str]


@dataclass(frozen=True)
class Reference:
    """A module that a module names."""

    module: Module
    property: str
    name: str


def examine(
    tree: Path,
    release: str,
    projects: Iterable[Project],
    makefiles: Mapping[str, list[str]],
    reader: Reader,
    progress: Progress = lambda text: None,
) -> Result:
    """Checks a tree; makefiles are those of its products, their lines by their names."""
    found = _find(tree, progress)
    added = _added(tree, projects)

    def ours(file: str) -> bool:
        return file.startswith(f"{PLACE}/") or file in added

    progress(f"reading {len(found[blueprint.FILE])} {blueprint.FILE} files")
    read = blueprint.read(reader, tree, found[blueprint.FILE], ours, PROPERTIES)
    graph = Graph(tree, release, read, added, platform_modules())
    # An older parser than the tree's may refuse what is right.
    wrong = [each for each in read.unreadable if ours(each.file) or (each.refused and reader.own)]
    problems = [
        *(Problem(f"{each.why}: blueprint cannot read that", "mend the file") for each in wrong),
        *graph.twice(),
        *graph.references(),
        *graph.files(),
        *graph.licences(),
        *graph.products(_product_lines(tree, makefiles)),
        *graph.test_configurations(),
        *graph.test_mappings(found[TEST_MAPPING]),
    ]
    count = sum(graph.is_ours(module) for module in graph.definitions)
    summary = f"{read.files} {blueprint.FILE} files, {count} modules of DRWA's"
    unreadable = [each.why for each in read.unreadable if each not in wrong]
    return Result(problems, unreadable, summary, frozenset(graph.from_table))


def put_repository(tree: Path) -> None:
    """Puts this repository into its place in a tree, as a manifest does: Soong follows no link."""
    ignored = shutil.ignore_patterns("__pycache__", "out", "target")
    for folder in FOLDERS:
        if (TOP / folder).is_dir():
            shutil.copytree(TOP / folder, tree / PLACE / folder, ignore=ignored, symlinks=True)


def platform_modules() -> dict[str, dict[str, Any]]:
    return tomllib.loads(PLATFORM_MODULES.read_text())


def _find(tree: Path, progress: Progress) -> dict[str, list[str]]:
    started = said = time.monotonic()

    def say(folders: int) -> None:
        nonlocal said
        if time.monotonic() - said > SAY_AFTER_S:
            said = time.monotonic()
            progress(f"{folders} folders looked into, {said - started:.0f} s")

    return blueprint.find(tree, (blueprint.FILE, TEST_MAPPING), say)


def _added(tree: Path, projects: Iterable[Project]) -> dict[str, str | None]:
    """What the series add to files, by the file's name in the tree; None where it is all theirs."""
    added: dict[str, str | None] = {}
    for project in projects:
        for patch in project.patches:
            _, *changes = re.split(r"^diff --git ", patch.read_text(errors="replace"), flags=re.M)
            for text in changes:
                if not (changed := re.search(r"^\+\+\+ b/(\S+)$", text, re.M)):
                    continue
                name = os.path.relpath(project.folder / changed[1], tree)
                lines = re.findall(r"^\+(?!\+\+ b/)(.*)$", text, re.M)
                new = re.search(r"^--- /dev/null$", text, re.M) or added.get(name, "") is None
                added[name] = None if new else "\n".join([added.get(name) or "", *lines])
    return added


def _product_lines(tree: Path, makefiles: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The lines of our makefiles and of the product's, without comments."""
    lines = dict(makefiles)
    for path in sorted((tree / PLACE / "device/product").rglob("*.mk")):
        text = path.read_text(errors="replace").splitlines()
        lines[str(path.relative_to(tree))] = [line.split("#")[0].rstrip() for line in text]
    return lines


class Graph:
    """The modules of a tree, and what they name."""

    def __init__(
        self,
        tree: Path,
        release: str,
        found: Found,
        added: dict[str, str | None],
        platform: dict[str, dict[str, Any]],
    ) -> None:
        self.tree = tree
        self.release = release
        self.whole = (tree / WHOLE_TREE).exists()
        self.added = added
        self.platform = platform
        self.modules = found.modules
        self.from_table: set[str] = set()

    def is_ours(self, module: Module) -> bool:
        """Whether we define it; what we add to another's module counts one by one."""
        in_place = module.file.startswith(f"{PLACE}/")
        return in_place or self.added.get(module.file, "") is None

    @cached_property
    def definitions(self) -> list[Module]:
        """What can be named. A soong_config_module_type may share its name with a module."""
        kinds = (PACKAGE, NAMESPACE)
        return [
            module
            for module in self.modules
            if module.kind not in kinds and not module.kind.startswith("soong_config_")
        ]

    @cached_property
    def packages(self) -> dict[str, Module]:
        return {module.package: module for module in self.modules if module.kind == PACKAGE}

    @cached_property
    def namespaces(self) -> dict[str, list[str]]:
        """By a namespace's folder, those that its modules see beside it and the root's."""
        return {
            module.package: list(strings(module.properties.get("imports")))
            for module in self.modules
            if module.kind == NAMESPACE
        }

    def namespace(self, package: str) -> str:
        while package and package not in self.namespaces:
            package = folder_of(package)
        return package

    @cached_property
    def by_name(self) -> dict[tuple[str, str], list[Module]]:
        found: dict[tuple[str, str], list[Module]] = {}
        for module in self.definitions:
            key = self.namespace(module.package), module.name
            found.setdefault(key, []).append(module)
        return found

    def defined(self, name: str, package: str) -> list[Module]:
        """The modules that a name in this package stands for."""
        if match := re.fullmatch(r"//([^:]*):(.+)", name):
            return self.by_name.get((self.namespace(match[1]), match[2]), [])
        own = self.namespace(package)
        for namespace in [own, *self.namespaces.get(own, []), ""]:
            if found := self.by_name.get((namespace, name)):
                return found
        return []

    def twice(self) -> Iterator[Problem]:
        for (_, name), modules in sorted(self.by_name.items()):
            sources = [module for module in modules if not _is_prebuilt(module)]
            if len(sources) > 1 and any(map(self.is_ours, sources)):
                places = " and ".join(module.place for module in sources)
                yield Problem(
                    f"module {name} is defined twice: {places}",
                    f"one of them has to go; an empty .find-ignore hides a folder from {PLACE}",
                )

    def our_references(self) -> Iterator[Reference]:
        for module in self.modules:
            added = None if self.is_ours(module) else self.added.get(module.file)
            if added is None and not self.is_ours(module):
                continue
            for name in module.properties:
                for text in strings(module.properties[name]):
                    if added is not None and f'"{text}"' not in added:
                        continue
                    if name in FILES:
                        if not text.startswith(":"):
                            continue
                        text = re.sub(r"\{.*\}$", "", text[1:])
                    elif name not in MODULES or text.startswith("//apex_available:"):
                        continue
                    yield Reference(module, name, text)

    def references(self) -> Iterator[Problem]:
        for reference in self.our_references():
            module, property_, name = reference.module, reference.property, reference.name
            what = f"{_title(module)}: {property_} names {name}"
            targets = self.defined(name, module.package)
            if not targets:
                yield from self._undefined(reference, what)
                continue
            if property_ == "defaults" and not any(_is_defaults(each) for each in targets):
                yield Problem(f"{what}, which is no defaults module", "name another")
            if property_ in (LICENSES, "licenses") and targets[0].kind != "license":
                yield Problem(f"{what}, which is no license", "name another")
            # The name of an APEX is only looked up.
            seen = property_ == "apex_available"
            if not seen and not any(self.visible(target, module.package) for target in targets):
                package = f"//{module.package}"
                yield Problem(
                    f"{what}, which {targets[0].place} makes invisible from {package}",
                    f'its visibility has to hold "{package}", or "//vendor:__subpackages__"',
                )

    def _undefined(self, reference: Reference, what: str) -> Iterator[Problem]:
        entry = self.platform.get(reference.name)
        if self.whole or entry is None:
            advice = f"sync the project with {entry['file']}" if entry else f"update {PLACE}"
            if reference.module.file.startswith(f"{TESTS}/"):
                advice += f", or leave the tests out: touch {TESTS}/.find-ignore"
            yield Problem(f"{what}, which no {blueprint.FILE} of this tree defines", advice)
            return
        if self.release not in entry:
            yield Problem(
                f"{what}, which Android {self.release} is not known to have",
                f"look, and add it to {PLATFORM_MODULES.name}",
            )
            return
        self.from_table.add(reference.name)
        package = folder_of(entry["file"])
        if not _matches(entry.get("visibility"), package, reference.module.package):
            yield Problem(
                f"{what}, which {entry['file']} makes invisible from //{reference.module.package}",
                "name another, or move the module",
            )

    def visible(self, target: Module, package: str) -> bool:
        if target.package == package:
            return True
        rules, folder = self._rules(target), target.package
        while rules is None:
            found = self.packages.get(folder)
            if found and "default_visibility" in found.properties:
                rules = list(strings(found.properties["default_visibility"]))
            elif folder:
                folder = folder_of(folder)
            else:
                break
        return _matches(rules, folder, package)

    def _rules(self, module: Module) -> list[str] | None:
        """Its own rules and those of its defaults; None where the package's hold."""
        if _is_defaults(module):
            own = module.properties.get("defaults_visibility")
            return None if own is None else list(strings(own))
        return self._inherited_rules(module, frozenset())

    def _inherited_rules(self, module: Module, seen: frozenset[str]) -> list[str] | None:
        rules: list[str] = []
        for name in strings(module.properties.get("defaults")):
            for default in [] if name in seen else self.defined(name, module.package)[:1]:
                rules += self._inherited_rules(default, seen | {name}) or []
        rules += strings(module.properties.get("visibility"))
        return rules or None

    def licences(self) -> Iterator[Problem]:
        for module in filter(self.is_ours, self.definitions):
            package = self.packages.get(module.package)
            licences = [
                *strings(module.properties.get("licenses")),
                *strings(package.properties.get(LICENSES) if package else None),
            ]
            if not licences and module.kind not in ("license", "license_kind"):
                yield Problem(
                    f"{_title(module)} has no licence", f"set {LICENSES} in its file's package"
                )

    def files(self) -> Iterator[Problem]:
        for module in filter(self.is_ours, self.modules):
            folder = self.tree / module.package
            for name, value in module.properties.items():
                if name not in MODULES | FILES | OTHERS:
                    yield Problem(
                        f"{_title(module)}: {name} is a property that this check does not know",
                        "tell drwatool/graph.py whether it names modules or files",
                    )
                for text in strings(value) if name in FILES else ():
                    if not text.startswith(":") and not _exists(folder, text):
                        yield Problem(
                            f"{_title(module)}: {name} names {text}, and no file is that",
                            f"is {PLACE} there with all of its files?",
                        )
            for suite in strings(module.properties.get("test_suites")):
                if suite not in SUITES:
                    yield Problem(
                        f"{_title(module)}: test_suites names {suite}, which is no suite",
                        f"known are {', '.join(sorted(SUITES))}",
                    )

    def products(self, makefiles: Mapping[str, list[str]]) -> Iterator[Problem]:
        for variable, word, place in _product_words(makefiles):
            if not (place.startswith(f"{PLACE}/") or OURS.search(word)) or "$" in word:
                continue
            partition, _, name = word.rpartition(":")
            targets = self.defined(name, "")
            if not targets:
                what = f"{place}: {variable} names {name}"
                yield Problem(
                    f"{what}, which no {blueprint.FILE} of this tree defines",
                    f"is {PLACE} there, no link, and with all of its files? "
                    "drwactl needs netd's patches",
                )
            elif "JARS" in variable:
                properties = targets[0].properties
                wanted = PARTITIONS.get(partition)
                for each in ("installable", *([wanted] if wanted else [])):
                    if properties.get(each) is not True:
                        what = f"{place}: {variable} names {word}"
                        yield Problem(f"{what}, and {targets[0].place} lacks {each}", "add it")

    def test_configurations(self) -> Iterator[Problem]:
        folders: dict[str, list[Module]] = {}
        for module in filter(self.is_ours, self.definitions):
            folders.setdefault(module.package, []).append(module)
        for folder, modules in folders.items():
            installed = {str(module.properties.get("stem", module.name)) for module in modules}
            for path in sorted((self.tree / folder).glob("AndroidTest*.xml")):
                for option, name in _installed(path):
                    if name not in installed:
                        what = f"{path.relative_to(self.tree)}: {option} names {name}"
                        yield Problem(
                            f"{what}, which no module of its folder installs",
                            f"those are {', '.join(sorted(installed))}",
                        )

    def test_mappings(self, files: Iterable[str]) -> Iterator[Problem]:
        for file in files:
            added = self.added.get(file)
            if not file.startswith(f"{PLACE}/") and added is None:
                continue
            try:
                names = list(_mapped(self.tree / file))
            except json.JSONDecodeError as error:
                yield Problem(f"{file}:{error.lineno}: {error.msg}", "mend the file")
                continue
            for name in names:
                if added is not None and f'"{name}"' not in added:
                    continue
                targets = self.defined(name, folder_of(file))
                suites = {
                    suite
                    for target in targets
                    for suite in strings(target.properties.get("test_suites"))
                }
                if not targets:
                    yield Problem(
                        f"{file} names {name}, which no {blueprint.FILE} of this tree defines",
                        "name another, or take it out",
                    )
                elif not suites & MAPPED_SUITES:
                    served = ", ".join(sorted(MAPPED_SUITES))
                    yield Problem(
                        f"{file} names {name}, which is in none of {served}",
                        f"add one to test_suites in {targets[0].place}",
                    )


def _title(module: Module) -> str:
    return f"{module.place}: {module.name or module.kind}"


def _exists(folder: Path, pattern: str) -> bool:
    if pattern in ("", "."):  # which Path.glob() refuses
        return True
    return next(folder.glob(pattern), None) is not None


def _is_defaults(module: Module) -> bool:
    return module.kind.endswith("defaults")


def _is_prebuilt(module: Module) -> bool:
    """Soong calls it prebuilt_NAME, so that the source of the same name may be there, too."""
    return module.kind.endswith(("_import", "_apex_set")) or module.kind.startswith(
        ("cc_prebuilt_", "rust_prebuilt_", "prebuilt_apex")
    )


def _matches(rules: list[str] | None, own: str, package: str) -> bool:
    """Whether the rules of a module, or of the package `own`, let this package name it."""
    if rules is None:
        return True
    if "//visibility:override" in rules:
        last = len(rules) - rules[::-1].index("//visibility:override")
        rules = rules[last:]
    for rule in rules:
        folder, _, scope = rule.partition(":")
        folder = folder.removeprefix("//") if folder else own
        if folder == "visibility":
            if scope == "public":
                return True
        elif package == folder or (scope == SUBPACKAGES and package.startswith(f"{folder}/")):
            return True
    return False


def _product_words(makefiles: Mapping[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    """The variable, a word of its value, and the place."""
    for name, lines in makefiles.items():
        variable = None
        for number, line in enumerate(lines, start=1):
            if variable is None:
                if not (match := PRODUCT_VARIABLE.match(line)):
                    continue
                variable, text = match[1], match[2]
            else:
                text = line
            for word in MAKE_CALL.sub("", text).rstrip("\\").split():
                yield variable, word, f"{name}:{number}"
            if not line.endswith("\\"):
                variable = None


def _installed(path: Path) -> Iterator[tuple[str, str]]:
    for option in ElementTree.parse(path).iter("option"):
        what, value = option.get("name", ""), option.get("value", "")
        if what in INSTALLED:
            yield what, value.removesuffix(INSTALLED[what])
        elif what == "push-file":
            yield what, option.get("key", "")


def _mapped(path: Path) -> Iterator[str]:
    """The tests that a TEST_MAPPING names; it may hold comments."""
    text = re.sub(r'("(?:[^"\\]|\\.)*")|(?:#|//).*', r"\1", path.read_text(errors="replace"))
    for group in json.loads(text).values():
        for entry in group if isinstance(group, list) else ():
            if "name" in entry:
                yield re.sub(r"\[.*", "", entry["name"])
