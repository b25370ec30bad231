# SPDX-License-Identifier: Apache-2.0
"""What check-api makes of classes that need more of Android than Android.bp says."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts import FRAMEWORKS, load

check_api = load("check-api")

from apicheck.classfile import Class, Method, read_code  # noqa: E402
from apicheck.reach import SDK_LEVEL, Program  # noqa: E402
from apicheck.texts import Api, Fact, read_facts, read_text, read_tree  # noqa: E402

# By name: what the classes below refer to, instead of Android's own.
STUBS = {
    "android.util.LocalLog": "public class LocalLog { public LocalLog(int lines) {} }",
    "android.os.Build": (
        "public class Build {"
        " public static boolean isDebuggable() { return false; }"
        " public static String TYPE;"
        " public static int NEWS;"
        " public static class VERSION { public static int SDK_INT; } }"
    ),
    "android.os.RemoteException": "public class RemoteException extends Exception {}",
    "android.telephony.News": "public class News extends RuntimeException {}",
    "com.android.internal.util.DumpUtils": (
        "public class DumpUtils { public static boolean checkDumpPermission("
        "android.content.Context c, String tag, java.io.PrintWriter pw) { return true; } }"
    ),
    "android.content.Context": "public class Context {}",
    "com.android.modules.utils.build.SdkLevel": (
        "public class SdkLevel {"
        " public static boolean isAtLeastR() { return true; }"
        " public static boolean isAtLeastS() { return true; } }"
    ),
}
BLUEPRINT = """\
java_library {{
    name: "one",
    srcs: ["src/**/*.java"],
    {sdk},
    min_sdk_version: "{level}",
}}
"""
# Starting a compiler takes longer than all of them take.
COMPILE = """\
import java.util.List;
import javax.tools.*;
public class Compile {
    public static void main(String[] args) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        try (var files = compiler.getStandardFileManager(null, null, null)) {
            for (String source : List.of(args).subList(1, args.length)) {
                String out = source.substring(0, source.indexOf("/src/")) + "/classes";
                new java.io.File(out).mkdirs();
                List<String> options =
                        List.of("-proc:none", "--release", "17", "-cp", args[0], "-d", out);
                var units = files.getJavaFileObjects(source);
                if (!compiler.getTask(null, files, null, options, null, units).call()) {
                    System.exit(1);
                }
            }
        }
    }
}
"""
HEAD = """\
package com.example;
import android.os.Build;
import com.android.modules.utils.build.SdkLevel;
public class One {
    int i; boolean b;
"""
NEW = "Build.isDebuggable();"
OF_31 = "android.os.Build.isDebuggable(): of 31, and nothing checks for that"

# By what has to be said of a class: its members.
NAMED = {
    "new android.util.LocalLog": (
        "Object f() { return new android.util.LocalLog(9); }",
        "android.util.LocalLog.LocalLog(int) is not known",
    ),
    "a field of LocalLog": (
        "android.util.LocalLog f;",
        "com.example.One: android.util.LocalLog is not known",
    ),
    "isDebuggable()": ("void f() { b = Build.isDebuggable(); }", f"com.example.One.f() → {OF_31}"),
    "a field": ("int f() { return Build.NEWS; }", "android.os.Build.NEWS is not known"),
    "for the platform": (
        "boolean f() { return com.android.internal.util.DumpUtils"
        ".checkDumpPermission(null, null, null); }",
        "DumpUtils.checkDumpPermission(Context, String, PrintWriter) is not in the API of one",
    ),
    "a class that is caught, before anything is checked": (
        "void f() { if (SdkLevel.isAtLeastS())"
        " try { g(); } catch (android.telephony.News e) {} } void g() {}",
        "android.telephony.News: of 33, and nothing checks",
    ),
    "a class that is extended": (
        "static class Own extends android.telephony.News {}",
        "com.example.One.Own extends android.telephony.News, of 33",
    ),
}
UNDERSTOOD = [
    f"void f() {{ if (Build.VERSION.SDK_INT >= 31) {NEW} }}",
    f"void f() {{ if (Build.VERSION.SDK_INT > 30) {NEW} }}",
    f"void f() {{ if (Build.VERSION.SDK_INT < 31) return; {NEW} }}",
    f"void f() {{ if (Build.VERSION.SDK_INT <= 30) return; for (;;) {NEW} }}",
    f"void f() {{ if (b || Build.VERSION.SDK_INT < 31) return; {NEW} }}",
    f"void f() {{ if (SdkLevel.isAtLeastS() && i > 3) {NEW} }}",
    "boolean f() { return SdkLevel.isAtLeastS() && Build.isDebuggable(); }",
    f"void f() {{ if (old()) return; {NEW} }}"
    " static boolean old() { return Build.VERSION.SDK_INT < 31; }",
    f"void f() {{ if (!isNew()) return; switch (i) {{ case 1: case 2: {NEW} }} }}"
    " private boolean isNew() { return Build.VERSION.SDK_INT >= 31; }",
    f"void f() {{ if (Build.VERSION.SDK_INT >= 31) g(); }} private void g() {{ {NEW} }}",
    "Runnable f() { return SdkLevel.isAtLeastS() ? () -> Build.isDebuggable() : null; }",
    f"void f() {{ if (SdkLevel.isAtLeastS()) try {{ g(); }}"
    f" catch (RuntimeException e) {{ {NEW} }} }} private void g() {{}}",
    f"interface G {{ void g(); }} static class H implements G {{ public void g() {{ {NEW} }} }}"
    " void f(G g) { if (SdkLevel.isAtLeastS()) g.g(); }",
    "String f() { return Build.TYPE; }",
]
UNCHECKED = [
    f"void f() {{ if (Build.VERSION.SDK_INT >= 30) {NEW} }}",
    f"void f() {{ if (Build.VERSION.SDK_INT < 31) {NEW} }}",
    f"void f() {{ if (b || Build.VERSION.SDK_INT >= 31) {NEW} }}",
    f"void f() {{ if (Build.VERSION.SDK_INT >= 31) i = 3; {NEW} }}",
    f"void f() {{ if (SdkLevel.isAtLeastR()) {NEW} }}",
    f"void f() {{ if (!SdkLevel.isAtLeastS()) {NEW} }}",
    f"void f() {{ if (b ? SdkLevel.isAtLeastR() : SdkLevel.isAtLeastS()) {NEW} }}",
    f"void f() {{ if (Build.VERSION.SDK_INT >= (b ? 30 : 31)) {NEW} }}",
    f"void f() {{ if (old()) return; {NEW} }}"
    " boolean old() { return Build.VERSION.SDK_INT < 31 && b; }",
    f"void f() {{ if (SdkLevel.isAtLeastS()) g(); }} public void g() {{ {NEW} }}",
    f"void f() {{ if (SdkLevel.isAtLeastS()) g(); h(); }} void h() {{ g(); }}"
    f" private void g() {{ {NEW} }}",
    "Runnable f() { return () -> Build.isDebuggable(); }",
    "Runnable f() { return Build::isDebuggable; }",
    f"interface G {{ void g(); }} static class H implements G {{ public void g() {{ {NEW} }} }}"
    " void f(G g) { g.g(); }",
    f"static class H implements Runnable {{ public void run() {{ {NEW} }} }}",
    f"static {{ {NEW} }}",
    f"void f() {{ try {{ if (Build.VERSION.SDK_INT < 31) g(); }} finally {{ {NEW} }} }}"
    " void g() {}",
]


def java(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name.replace('.', '/')}.java"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@dataclass(frozen=True)
class Compiled:
    """Classes com.example.One, each in a folder by its members."""

    folder: Path
    numbers: dict[str, int]

    def problems(self, members: str, sdk: str = "", level: int = 30) -> list[str]:
        """By the facts that are kept, and a few of what nobody uses."""
        folder = self.folder / str(self.numbers[members])
        blueprint = folder / "Android.bp"
        blueprint.write_text(
            BLUEPRINT.format(sdk=sdk or 'sdk_version: "system_server_current"', level=level)
        )
        facts = read_facts(FRAMEWORKS / "api.tsv")
        facts.facts["android/os/Build", "isDebuggable", "()Z"] = Fact(31, "module-lib", "")
        facts.facts["android/telephony/News", "", ""] = Fact(33, "public", "")
        facts.facts["android/telephony/News", "<init>", "()V"] = Fact(33, "public", "")
        found: list[str] = check_api.check([folder / "classes"], facts, blueprint).problems
        return found


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """All in one process, of which each class is then moved to where it has its own name."""
    folder = tmp_path_factory.mktemp("api")
    all_members = [*(members for members, _ in NAMED.values()), *UNDERSTOOD, *UNCHECKED]
    numbers = {members: i for i, members in enumerate(all_members)}
    stubs = [
        java(folder / "stubs", name, f"package {name.rpartition('.')[0]};\n{text}\n")
        for name, text in STUBS.items()
    ]
    options = ["-proc:none", "-Xlint:none", "--release", "17"]
    subprocess.run(["javac", *options, "-d", folder / "android", *stubs], check=True)
    tool = java(folder, "Compile", COMPILE)
    sources = [
        java(folder / str(number) / "src", "com.example.One", f"{HEAD}{members}\n}}\n")
        for members, number in numbers.items()
    ]
    subprocess.run(["java", tool, folder / "android", *sources], check=True)
    return Compiled(folder, numbers)


@pytest.mark.parametrize("what", NAMED)
def test_what_is_not_in_the_api_is_named(compiled: Compiled, what: str) -> None:
    members, expected = NAMED[what]
    assert any(expected in problem for problem in compiled.problems(members))


@pytest.mark.parametrize("members", UNDERSTOOD)
def test_checks_are_understood(compiled: Compiled, members: str) -> None:
    assert compiled.problems(members) == []


@pytest.mark.parametrize("members", UNCHECKED)
def test_what_no_check_precedes_is_named(compiled: Compiled, members: str) -> None:
    assert [problem for problem in compiled.problems(members) if OF_31 in problem]


def test_a_branch_that_others_jump_to_tests_nothing() -> None:
    """Which javac does not make of a check, but other compilers may."""
    # if (b ? true : SdkLevel.isAtLeastS()) isDebuggable();
    code = bytes.fromhex("1b 990007 04 a70006 b80001 990006 b80002 b1")
    method = Method("One", "f", "(Z)V", True, read_code(code), [])
    calls = {1: (SDK_LEVEL, "isAtLeastS", "()Z"), 2: ("android/os/Build", "isDebuggable", "()Z")}
    one = Class("One", [], True, calls, {}, [method], [])
    assert Program([one]).levels_of(method)[14] == 0


def test_what_the_blueprint_says_counts(compiled: Compiled) -> None:
    members, _ = NAMED["isDebuggable()"]
    assert compiled.problems(members, level=31) == []
    (found,) = compiled.problems(members, 'sdk_version: "system_current"', 31)
    assert "is not in the API of one: module-lib" in found
    members, _ = NAMED["for the platform"]
    assert compiled.problems(members, "platform_apis: true", 34) == []


TEXT = """\
// Signature format: 2.0
package @java.lang.Deprecated android.one {

  @Feature("a b(c {") public class A<K, V extends android.one.B> extends android.one.B<K> \
implements java.util.Map<K,V> java.io.Closeable {
    ctor public A(@IntRange(from=1, to=9) int, @NonNull java.util.List<java.util.Map<K,V>>);
    method @NonNull public static <T extends android.one.A.In<?>> T[] m(K, V, @Nullable Class<T>, \
String...) throws android.one.E;
    method @Deprecated @RequiresPermission(anyOf={"a;", "b"}) protected long[][] n();
    field public static final int F = 3; // 0x3
    field @NonNull public java.util.Set<java.lang.String> g;
  }

  public static final enum A.In extends java.lang.Enum<android.one.A.In> {
    enum_constant public static final android.one.A.In ONE;
  }

}
"""


def test_texts_are_read() -> None:
    api = Api()
    read_text(api, TEXT, 30, "public", "a text")
    assert set(api.facts) == {
        ("android/one/A", "", ""),
        ("android/one/A", "<init>", "(ILjava/util/List;)V"),
        (
            "android/one/A",
            "m",
            "(Ljava/lang/Object;Landroid/one/B;Ljava/lang/Class;[Ljava/lang/String;)"
            "[Landroid/one/A$In;",
        ),
        ("android/one/A", "n", "()[[J"),
        ("android/one/A", "F", "I"),
        ("android/one/A", "g", "Ljava/util/Set;"),
        ("android/one/A$In", "", ""),
        ("android/one/A$In", "ONE", "Landroid/one/A$In;"),
    }
    assert api.parents == {
        "android/one/A": {"android/one/B", "java/util/Map", "java/io/Closeable"},
        "android/one/A$In": {"java/lang/Enum"},
    }


def test_a_tree_tells_since_when(tmp_path: Path) -> None:
    for level, surface, text in (
        (29, "system", "public class A {\n    method public void old();\n  }"),
        (33, "public", "public class A {\n    method public void old();\n  }"),
        (33, "module-lib", "public class A {\n    method public void later();\n  }"),
    ):
        path = tmp_path / f"prebuilts/sdk/{level}/{surface}/api/android.txt"
        path.parent.mkdir(parents=True)
        path.write_text(f"package android.one {{\n\n  {text}\n\n}}\n")
        (path.parent / "removed.txt").write_text(path.read_text().replace("void old", "void no"))
    api = read_tree(tmp_path)
    old = api.find(("android/one/A", "old", "()V"))
    later = api.find(("android/one/A", "later", "()V"))
    assert old == Fact(30, "system", "29/system/api/android.txt")
    assert later == Fact(33, "module-lib", "33/module-lib/api/android.txt")
    assert api.find(("android/one/A", "no", "()V")) is None
    assert api.find(("android/one/B", "", "")) is None
