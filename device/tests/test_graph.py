# SPDX-License-Identifier: Apache-2.0
"""The build graph of this repository in a tree, and of small trees with one defect each."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from drwatool import blueprint, graph, trees
from drwatool.blueprint import Reader, ReaderError
from drwatool.described import read_series
from drwatool.graph import FOLDERS, PLACE, Graph, Result, put_repository
from drwatool.trees import Project

TOP = Path(__file__).resolve().parents[2]
RELEASES = trees.releases()["releases"]
IN_NETD = "system/netd/server/drwa"
IN_CONNECTIVITY = "packages/modules/Connectivity/drwa"
SEVEN = [
    "drwactl",
    "libnetd_drwa",
    "netd_drwa_controller_fuzzer",
    "netd_drwa_fuzzer_defaults",
    "netd_drwa_sockets_fuzzer",
    "netd_drwa_test",
    "netd_drwa_uplink_fuzzer",
]
PRIVATE = 'package {\n    default_visibility: ["//visibility:private"],\n}\n'
LICENSED = 'package {\n    default_applicable_licenses: ["Android-Apache-2.0"],\n}\n'


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """With the machine's parser: these trees have none of their own."""
    folder = tmp_path_factory.mktemp("reader")
    return blueprint.compile_reader(folder, folder)


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with this repository in its place."""
    tree = tmp_path_factory.mktemp("repository")
    put_repository(tree)
    return tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tmp_path / "tree"


def write(tree: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)


def copy(repository: Path, tree: Path, netd: bool) -> None:
    """The repository's tree to change, and what Connectivity's and netd's series add."""
    shutil.copytree(repository, tree, symlinks=True)
    shutil.copytree(TOP / "kernel/bpf/android", tree / IN_CONNECTIVITY / "bpf")
    if netd:
        shutil.copytree(TOP / "netd_patches/src/server/drwa", tree / IN_NETD)


def examine(
    reader: Reader, tree: Path, release: str = "15", makefiles: dict[str, list[str]] | None = None
) -> Result:
    projects = []
    for name in "packages_modules_Connectivity", "system_netd":
        if name in RELEASES[release]:
            folder = tree / trees.releases()["projects"][name]["path"]
            projects.append(Project(name, folder, f"{name}/{release}", patches_of(name, tree)))
    return graph.examine(tree, release, projects, makefiles or {}, reader)


def patches_of(name: str, tree: Path) -> tuple[Path, ...]:
    """What a series adds, without the files that it would be added to."""
    made = []
    for step in read_series(*trees.described_in(name)):
        patch = tree.parent / f"made-{name}-{step.name}.patch"
        new = [added(path, "/dev/null", source.read_text()) for path, source in step.files.items()]
        old = [
            added(place.file, f"a/{place.file}", form.text)
            for place in step.places
            for form in place.forms
        ]
        patch.write_text("".join([*new, *old]))
        made.append(patch)
    return tuple(made)


def added(path: str, before: str, text: str) -> str:
    lines = "".join(f"+{line}\n" for line in text.split("\n"))
    return f"diff --git a/{path} b/{path}\n--- {before}\n+++ b/{path}\n@@ -1 +1 @@\n{lines}"


def problems(
    reader: Reader, tree: Path, makefiles: dict[str, list[str]] | None = None
) -> list[str]:
    result = examine(reader, tree, makefiles=makefiles)
    assert result.unreadable == []
    return [problem.what for problem in result.problems]


@pytest.mark.parametrize(
    ("release", "netd"),
    [
        (release, netd)
        for release, projects in RELEASES.items()
        for netd in ([True, False] if "system_netd" in projects else [False])
    ],
)
def test_repository(reader: Reader, repository: Path, tree: Path, release: str, netd: bool) -> None:
    copy(repository, tree, netd)
    result = examine(reader, tree, release)
    assert (result.problems, result.unreadable) == ([], [])
    assert re.search(r" [1-9]\d* modules of DRWA's", result.summary)


def test_seven_modules_twice(reader: Reader, repository: Path, tree: Path) -> None:
    """The files that netd's series is made of, seen beside what it adds."""
    copy(repository, tree, netd=True)
    (tree / PLACE / "netd_patches/.find-ignore").unlink(missing_ok=True)
    found = problems(reader, tree)
    twice = [text.split()[1] for text in found if "is defined twice" in text]
    assert twice == SEVEN
    (invisible,) = (text for text in found if "is defined twice" not in text)
    assert "names system_netd_license, which system/netd/Android.bp makes invisible" in invisible


def test_no_other_files() -> None:
    """What put_repository() leaves out has no file that Soong's finder looks for."""
    names = (blueprint.FILE, graph.TEST_MAPPING, "Android.mk", "AndroidProducts.mk", "OWNERS")
    for folder in sorted({path.name for path in TOP.iterdir() if path.is_dir()} - set(FOLDERS)):
        if not folder.startswith(".") and folder != "out":
            assert not any(blueprint.find(TOP / folder, names, lambda count: None).values())


def test_nothing_else_is_hidden() -> None:
    """Where .find-ignore is, there is nothing that the build or a test runner would miss."""
    for ignored in TOP.glob("*/.find-ignore"):
        found = [path.name for path in ignored.parent.rglob("*") if path.is_file()]
        looked_for = ("OWNERS", "METADATA", "TEST_MAPPING", "Android.mk", "CleanSpec.mk")
        assert not set(found) & set(looked_for)
        assert not [name for name in found if name.endswith(".mk")]


def test_platform_modules_are_used(reader: Reader, repository: Path, tree: Path) -> None:
    """No stale entry, for no release."""
    copy(repository, tree, netd=True)
    for release in RELEASES:
        if "system_netd" not in RELEASES[release]:
            shutil.rmtree(tree / "system")
        known = {name for name, entry in graph.platform_modules().items() if release in entry}
        assert examine(reader, tree, release).from_table == known


OK = "no defect"
# A tree's files, and what is wrong with it.
DEFECTS: dict[str, tuple[dict[str, str], str]] = {
    "twice": (
        {
            f"{PLACE}/a/Android.bp": LICENSED + 'cc_library { name: "drwa" }',
            "external/b/Android.bp": 'cc_library { name: "drwa" }',
        },
        "module drwa is defined twice: external/b/Android.bp:1 and vendor/drwa/a/Android.bp:4",
    ),
    "twice in one file": (
        {f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a" }\ncc_test { name: "a" }'},
        "module a is defined twice",
    ),
    "twice, one of them a prebuilt": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'java_library { name: "drwa" }',
            "prebuilts/Android.bp": 'java_import { name: "drwa" }',
        },
        OK,
    ),
    "twice, neither of them ours": (
        {
            "a/Android.bp": 'java_library { name: "theirs" }',
            "b/Android.bp": 'java_library { name: "theirs" }',
        },
        OK,
    ),
    "twice, in namespaces": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'java_library { name: "drwa" }',
            "device/x/Android.bp": 'soong_namespace { }\njava_library { name: "drwa" }',
        },
        OK,
    ),
    "missing dependency": (
        {f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a", static_libs: ["libnosuch"] }'},
        "Android.bp:4: a: static_libs names libnosuch, which no Android.bp of this tree defines",
    ),
    "dependency in another namespace": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a", static_libs: ["b"] }',
            "device/x/Android.bp": 'soong_namespace { }\ncc_library { name: "b" }',
        },
        "static_libs names b, which no Android.bp of this tree defines",
    ),
    "dependency by its namespace": (
        {
            f"{PLACE}/Android.bp": LICENSED
            + 'cc_library { name: "a", static_libs: ["//device/x:b"] }',
            "device/x/Android.bp": 'soong_namespace { }\ncc_library { name: "b" }',
        },
        OK,
    ),
    "dependency of the platform": (
        {f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a", shared_libs: ["libbase"] }'},
        OK,
    ),
    "dependency that a whole tree lacks": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a", shared_libs: ["libbase"] }',
            "build/envsetup.sh": "",
            "build/soong/licenses/Android.bp": 'license { name: "Android-Apache-2.0" }',
        },
        "shared_libs names libbase, which no Android.bp of this tree defines",
    ),
    "APEX that is private": (
        {
            f"{PLACE}/Android.bp": LICENSED
            + 'java_library { name: "a", apex_available: ["//apex_available:platform", "x"] }',
            "packages/Android.bp": 'apex { name: "x", visibility: ["//visibility:private"] }',
        },
        OK,
    ),
    "APEX that is not there": (
        {f"{PLACE}/Android.bp": LICENSED + 'java_library { name: "a", apex_available: ["x"] }'},
        "apex_available names x, which no Android.bp of this tree defines",
    ),
    "source in a missing module": (
        {f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a", srcs: [":nosuch{.h}"] }'},
        "srcs names nosuch, which no Android.bp of this tree defines",
    ),
    "missing source": (
        {f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a", srcs: ["a.cpp"] }'},
        "srcs names a.cpp, and no file is that",
    ),
    "source": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a", srcs: ["**/*.cpp"] }',
            f"{PLACE}/src/a.cpp": "",
        },
        OK,
    ),
    "missing default": (
        {f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a", defaults: ["nosuch"] }'},
        "defaults names nosuch, which no Android.bp",
    ),
    "default that is none": (
        {
            f"{PLACE}/Android.bp": LICENSED
            + 'cc_library { name: "a", defaults: ["b"] }\ncc_library { name: "b" }'
        },
        "defaults names b, which is no defaults module",
    ),
    "invisible licence": (
        {
            "system/other/Android.bp": 'license { name: "l", visibility: [":__subpackages__"] }',
            f"{PLACE}/Android.bp": 'package { default_applicable_licenses: ["l"] }\n'
            'cc_library { name: "a" }',
        },
        "default_applicable_licenses names l, which system/other/Android.bp:1 makes invisible",
    ),
    "licence that is none": (
        {
            f"{PLACE}/Android.bp": 'package { default_applicable_licenses: ["a"] }\n'
            'cc_library { name: "a" }',
        },
        "default_applicable_licenses names a, which is no license",
    ),
    "no licence": (
        {
            f"{PLACE}/Android.bp": LICENSED,
            f"{PLACE}/below/Android.bp": 'cc_library { name: "a" }',
        },
        "below/Android.bp:1: a has no licence",
    ),
    "unknown property": (
        {f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a", rtti: true }'},
        "rtti is a property that this check does not know",
    ),
    "unknown suite": (
        {f"{PLACE}/Android.bp": LICENSED + 'cc_test { name: "a", test_suites: ["vtz"] }'},
        "test_suites names vtz, which is no suite",
    ),
    "syntax": (
        {f"{PLACE}/Android.bp": "cc_library { name }"},
        "vendor/drwa/Android.bp:1:19: expected",
    ),
    "undefined variable": (
        {f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a", srcs: nosuch }'},
        "vendor/drwa/Android.bp:4: there is no variable nosuch",
    ),
    "variables from above": (
        {
            "vendor/Android.bp": 'names = ["libnosuch"]\n',
            f"{PLACE}/Android.bp": LICENSED
            + 'names += ["libbase"]\ncc_library { name: "a", shared_libs: names }',
        },
        "shared_libs names libnosuch, which",
    ),
    "a variable from beside": (
        {
            "system/Android.bp": 'names = ["libbase"]\n',
            f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a", shared_libs: names }',
        },
        "there is no variable names",
    ),
    "another file of the folder": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'build = ["more.bp"]\nlibs = ["libnosuch"]',
            f"{PLACE}/more.bp": 'cc_library { name: "a", shared_libs: libs }',
        },
        "vendor/drwa/more.bp:1: a: shared_libs names libnosuch, which",
    ),
    "TEST_MAPPING": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'cc_test { name: "a" }',
            f"{PLACE}/TEST_MAPPING": '// SPDX\n{"presubmit": [{"name": "b[x86]"}]}',
        },
        "vendor/drwa/TEST_MAPPING names b, which no Android.bp of this tree defines",
    ),
    "TEST_MAPPING with comments": (
        {
            f"{PLACE}/Android.bp": LICENSED
            + 'cc_test { name: "a", test_suites: ["device-tests"] }',
            f"{PLACE}/TEST_MAPPING": '# {\n{"a": [{"name": "a", "x": "//"}] // "name": "b"\n}',
        },
        OK,
    ),
    "TEST_MAPPING that is none": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'cc_test { name: "a" }',
            f"{PLACE}/TEST_MAPPING": '{"presubmit": [{"name": "a",}]}',
        },
        "vendor/drwa/TEST_MAPPING:1: ",
    ),
    "TEST_MAPPING without a suite": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'cc_test { name: "a", test_suites: ["vts"] }',
            f"{PLACE}/TEST_MAPPING": '{"presubmit": [{"name": "a"}]}',
        },
        "names a, which is in none of device-tests, general-tests",
    ),
    "test configuration": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'android_test { name: "Tests" }',
            f"{PLACE}/AndroidTest.xml": '<a><option name="test-file-name" value="Test.apk"/></a>',
        },
        "AndroidTest.xml: test-file-name names Test, which no module of its folder installs",
    ),
    "test configuration of a program": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'python_test { name: "a", stem: "b" }',
            f"{PLACE}/AndroidTest.xml": '<a><option name="push-file" key="a" value="/b"/></a>',
        },
        "push-file names a, which no module of its folder installs",
    ),
    "package": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'prebuilt_etc { name: "drwa.rc" }',
            f"{PLACE}/device/product/a.mk": "PRODUCT_PACKAGES += \\\n    drwa.rc \\\n    drwa.cf",
        },
        "vendor/drwa/device/product/a.mk:3: PRODUCT_PACKAGES names drwa.cf, which no",
    ),
    "jar": (
        {
            f"{PLACE}/device/product/a.mk": "PRODUCT_SYSTEM_SERVER_JARS_EXTRA += system_ext:drwa",
        },
        "PRODUCT_SYSTEM_SERVER_JARS_EXTRA names drwa, which no",
    ),
    "jar on another partition": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'java_library { name: "drwa", installable: true }',
            f"{PLACE}/device/product/a.mk": "PRODUCT_SYSTEM_SERVER_JARS += system_ext:drwa",
        },
        "names system_ext:drwa, and vendor/drwa/Android.bp:4 lacks system_ext_specific",
    ),
    "jar that is not installed": (
        {
            f"{PLACE}/Android.bp": LICENSED + 'java_library { name: "drwa" }',
            f"{PLACE}/device/product/a.mk": "PRODUCT_SYSTEM_SERVER_JARS += drwa # a jar",
        },
        "names drwa, and vendor/drwa/Android.bp:4 lacks installable",
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defects(reader: Reader, tree: Path, name: str) -> None:
    files, what = DEFECTS[name]
    write(tree, files)
    found = problems(reader, tree)
    if what == OK:
        assert found == []
    else:
        assert len(found) == 1
        assert what in found[0]


def test_names_in_the_products_makefiles(reader: Reader, tree: Path) -> None:
    """The user's own, of which those with our names count."""
    tree.mkdir()
    lines = ["PRODUCT_PACKAGES += Camera", "PRODUCT_PACKAGES_DEBUG += drwactl $(DRWA_MORE)"]
    (found,) = problems(reader, tree, {"device/phone.mk": lines})
    assert "device/phone.mk:2: PRODUCT_PACKAGES_DEBUG names drwactl, which no" in found


# Where a library of the platform's is, what makes it visible, and whether it is from vendor/drwa.
VISIBILITY = {
    "nothing": ({}, "", True),
    "private": ({}, 'visibility: ["//visibility:private"]', False),
    "ours": ({}, 'visibility: ["//vendor/drwa"]', True),
    "our folder's": ({}, 'visibility: ["//vendor/drwa:__pkg__"]', True),
    "below vendor": ({}, 'visibility: ["//vendor:__subpackages__"]', True),
    "vendor alone": ({}, 'visibility: ["//vendor"]', False),
    "a like name": ({}, 'visibility: ["//vendor/drw:__subpackages__"]', False),
    "its own": ({}, 'visibility: [":__subpackages__"]', False),
    "overridden": (
        {},
        'visibility: ["//vendor/drwa", "//visibility:override", "//system"]',
        False,
    ),
    "package": ({"lib/b": PRIVATE}, "", False),
    "package above": ({"lib": PRIVATE}, "", False),
    "package far above": ({"": PRIVATE}, "", False),
    "package above, and its own": ({"lib": PRIVATE}, 'visibility: ["//visibility:public"]', True),
    "package between": (
        {"lib": PRIVATE, "lib/b": 'package { default_visibility: ["//vendor/drwa"] }\n'},
        "",
        True,
    ),
    "package of its folder's": (
        {"lib": 'package { default_visibility: [":__subpackages__"] }\n'},
        "",
        False,
    ),
    "package without a word": ({"lib": PRIVATE, "lib/b": LICENSED}, "", False),
    "defaults": (
        {"lib/d": 'cc_defaults { name: "d", visibility: ["//system"] }'},
        'defaults: ["d"]',
        False,
    ),
    "defaults and its own": (
        {"lib/d": 'cc_defaults { name: "d", visibility: ["//vendor/drwa"] }'},
        'defaults: ["d"], visibility: ["//system"]',
        True,
    ),
    "defaults of defaults": (
        {
            "lib/d": 'cc_defaults { name: "d", defaults: ["e"] }\n'
            'cc_defaults { name: "e", visibility: ["//system"], defaults: ["d"] }'
        },
        'defaults: ["d"]',
        False,
    ),
}


@pytest.mark.parametrize("name", VISIBILITY)
def test_visibility(reader: Reader, tree: Path, name: str) -> None:
    others, property_, visible = VISIBILITY[name]
    files = {f"{folder}/Android.bp".lstrip("/"): text for folder, text in others.items()}
    library = f'cc_library {{ name: "b", {property_} }}'
    files["lib/b/Android.bp"] = files.get("lib/b/Android.bp", "") + library
    files[f"{PLACE}/Android.bp"] = LICENSED + 'cc_library { name: "a", static_libs: ["b"] }'
    write(tree, files)
    found = [text for text in problems(reader, tree) if "makes invisible" in text]
    assert bool(found) is not visible


def test_visibility_of_defaults_themselves(reader: Reader, tree: Path) -> None:
    """What their `visibility` says is for those that use them."""
    ours = LICENSED + 'cc_library { name: "a", defaults: ["d"] }'
    there = 'cc_defaults { name: "d", visibility: ["//system"] }'
    write(tree, {f"{PLACE}/Android.bp": ours, "lib/Android.bp": there})
    assert problems(reader, tree) == []
    there = 'cc_defaults { name: "d", defaults_visibility: ["//system"] }'
    write(tree, {"lib/Android.bp": there})
    assert "defaults names d, which lib/Android.bp:1 makes invisible" in problems(reader, tree)[0]


def test_nobody_is_invisible_at_home(reader: Reader, tree: Path) -> None:
    private = 'visibility: ["//visibility:private"]'
    text = f'cc_library {{ name: "a", static_libs: ["b"] }}\ncc_library {{ name: "b", {private} }}'
    write(tree, {f"{PLACE}/Android.bp": LICENSED + text})
    assert problems(reader, tree) == []


def link_folder(tree: Path) -> None:
    shutil.move(tree / "other", tree.parent / "elsewhere")
    (tree / "other").symlink_to(tree.parent / "elsewhere")


def link_file(tree: Path) -> None:
    shutil.move(tree / "other/Android.bp", tree / "other/root.bp")
    (tree / "other/Android.bp").symlink_to("root.bp")


def put(name: str) -> Callable[[Path], None]:
    return lambda tree: write(tree, {name: ""})


def into(name: str) -> Callable[[Path], None]:
    def change(tree: Path) -> None:
        (tree / name).mkdir()
        shutil.move(tree / "other", tree / name)

    return change


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (put("other/nothing"), True),
        (put("other/.find-ignore"), False),
        (put("other/.out-dir"), False),
        (put(".out-dir.txt"), True),
        (into(".git"), False),
        (into(".repo"), False),
        (into("below"), True),
        (link_folder, False),
        (link_file, True),
    ],
)
def test_what_soongs_finder_sees(
    reader: Reader, tree: Path, change: Callable[[Path], None], seen: bool
) -> None:
    write(
        tree,
        {
            "other/Android.bp": 'cc_library { name: "a" }',
            f"{PLACE}/Android.bp": LICENSED + 'cc_library { name: "a" }',
        },
    )
    change(tree)
    assert bool(problems(reader, tree)) is seen


def test_below_a_marker(reader: Reader, tree: Path) -> None:
    twice = LICENSED + 'cc_library { name: "a" }'
    write(tree, {f"{PLACE}/Android.bp": twice, f"{PLACE}/b/c/Android.bp": twice})
    assert len(problems(reader, tree)) == 1
    write(tree, {f"{PLACE}/b/.find-ignore": ""})
    assert problems(reader, tree) == []


PATCH = """\
diff --git a/server/Android.bp b/server/Android.bp
--- a/server/Android.bp
+++ b/server/Android.bp
@@ -1 +1,2 @@
     name: "libnetd_server",
+    static_libs: ["{}"],
diff --git a/TEST_MAPPING b/TEST_MAPPING
--- a/TEST_MAPPING
+++ b/TEST_MAPPING
@@ -1 +1,2 @@
+    {{ "name": "{}" }},
"""


@pytest.mark.parametrize(
    ("library", "test", "what"),
    [
        ("libbase", "their_test", []),
        ("libbase", "our_test", ["system/netd/TEST_MAPPING names our_test, which no"]),
        ("libnosuch", "their_test", ["static_libs names libnosuch, which no"]),
    ],
)
def test_what_a_patch_adds(
    reader: Reader, tree: Path, tmp_path: Path, library: str, test: str, what: list[str]
) -> None:
    """To others' files, of which the rest is not ours to judge."""
    write(
        tree,
        {
            "system/netd/server/Android.bp": 'cc_library { name: "libnetd_server", '
            f'shared_libs: ["libtheirs"], static_libs: ["{library}"], rtti: true }}\n'
            'cc_test { name: "their_test", test_suites: ["device-tests"] }',
            "system/netd/TEST_MAPPING": f'{{"a": [{{"name": "lost"}}, {{"name": "{test}"}}]}}',
        },
    )
    (tmp_path / "0001.patch").write_text(PATCH.format(library, test))
    patches = (tmp_path / "0001.patch",)
    project = Project("system_netd", tree / "system/netd", "system_netd/15", patches)
    result = graph.examine(tree, "15", [project], {}, reader)
    assert len(result.problems) == len(what)
    assert all(text in problem.what for text, problem in zip(what, result.problems, strict=True))


def test_a_release_that_lacks_a_module(reader: Reader, tree: Path) -> None:
    """Nobody has looked there."""
    text = LICENSED + 'cc_library { name: "a", shared_libs: ["libgmock"] }'
    write(tree, {f"{PLACE}/Android.bp": text})
    problem = graph.examine(tree, "18", (), {}, reader).problems[-1]
    assert "libgmock, which Android 18 is not known to have" in problem.what


def test_syntax_that_the_parser_is_too_old_for(reader: Reader, tree: Path) -> None:
    """A file of others is no problem then; but nobody may call the tree good."""
    text = 'cc_library { name: "a", srcs: select(arch(), { "arm64": ["a.c"], default: [] }) }'
    write(tree, {"other/Android.bp": text})
    result = examine(reader, tree)
    assert result.problems == []
    assert [text.split(":")[0] for text in result.unreadable] == ["other/Android.bp"]
    own = Reader(reader.program, own=True)
    (problem,) = graph.examine(tree, "15", (), {}, own).problems
    assert "other/Android.bp:1:37: " in problem.what


def test_all_branches_of_a_select(tree: Path, tmp_path: Path) -> None:
    """What bpjson prints of them with a later parser."""
    write(tree, {f"{PLACE}/Android.bp": ""})
    value = '{"sum":[["libbase"],{"select":[["libone"],null,["libtwo"]]}]}'
    properties = f'[["name","a"],["static_libs",{value}]]'
    module = f'{{"module":"cc_library","line":1,"properties":{properties}}}'
    program = tmp_path / "bpjson"
    entry = f'{{"file":"{PLACE}/Android.bp","definitions":[{module}]}}'
    program.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{entry}'\n")
    program.chmod(0o755)
    found = [text for text in problems(Reader(program, own=True), tree) if "static_libs" in text]
    assert [text.split("names ")[1].split(",")[0] for text in found] == ["libone", "libtwo"]


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReaderError, match="there is no Go: apt install golang-go"):
        blueprint.compile_reader(tmp_path, tmp_path)


def test_a_parser_that_does_not_compile(tmp_path: Path) -> None:
    """The machine's is taken then."""
    write(tmp_path, {f"tree/{blueprint.OWN_PARSER}/parser.go": "package parser\nfunc {"})
    (tmp_path / "out").mkdir()
    assert not blueprint.compile_reader(tmp_path / "tree", tmp_path / "out").own


def test_the_trees_own_parser_comes_first(tmp_path: Path) -> None:
    shutil.copytree(blueprint.DEBIANS_PARSER, tmp_path / "tree" / blueprint.OWN_PARSER)
    (tmp_path / "out").mkdir()
    assert blueprint.compile_reader(tmp_path / "tree", tmp_path / "out").own


@pytest.mark.skipif("AOSP" not in os.environ, reason="AOSP=DIR names no real tree")
def test_own_parser_of_a_real_tree(tmp_path: Path) -> None:
    aosp = Path(os.environ["AOSP"]).resolve()
    reader = blueprint.compile_reader(aosp, tmp_path)
    files = blueprint.find(aosp, [blueprint.FILE], lambda count: None)[blueprint.FILE]
    found = blueprint.read(reader, aosp, files, lambda file: False, graph.PROPERTIES)
    assert found.files >= len(files)
    assert [each.why for each in found.unreadable if each.refused and reader.own] == []


def test_graph_of_nothing(tmp_path: Path) -> None:
    empty = Graph(tmp_path, "15", blueprint.Found(), {}, {})
    assert list(empty.references()) == []
