# SPDX-License-Identifier: Apache-2.0
"""Small git trees with paths of AOSP and the kernel, series for them, and the tool with those."""

import compileall
import json
import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DEVICE = Path(__file__).resolve().parents[1]
MODULE = "aosp/packages/modules/Connectivity"
BASE = "aosp/frameworks/base"
KERNEL = "linux"
SERVICE = "service/src/com/android/server/ConnectivityService.java"
POLICY = "service/src/com/android/server/connectivity/drwa/DrwaController.java"
SETTING = "service/src/com/android/server/connectivity/drwa/DrwaSetting.java"
CARRIER = "telephony/java/android/telephony/CarrierConfigManager.java"
OLD = "telephony/java/android/telephony/old.txt"
LINK = "telephony/java/android/telephony/Link.java"
TCP = "net/ipv4/tcp_output.c"
IDENTITY = [*("-c", "user.name=Builder"), *("-c", "user.email=builder@example.org")]

RELEASES = """\
[api_levels]
14 = 34
15 = 35
16 = 36
[projects.packages_modules_Connectivity]
path = "packages/modules/Connectivity"
host = "A"
[projects.frameworks_base]
path = "frameworks/base"
[projects.system_netd]
path = "system/netd"
[releases.15.packages_modules_Connectivity]
[releases.15.frameworks_base]
"""
CALLS = """\
[[place]]
what = "what the policy is told"
file = "service/src/com/android/server/ConnectivityService.java"
function = "connectAll"
after = "connect(20);"
text = "tellDrwa();"

[[place]]
what = "dumpsys"
file = "service/src/com/android/server/ConnectivityService.java"
function = "connectAll"
before = "connect(49);"
text = "dumpDrwa();"
"""
KEYS = """\
[[place]]
what = "the keys"
file = "telephony/java/android/telephony/CarrierConfigManager.java"
after = "key(30);"
text = "key(DRWA);"
"""
LINES = """\
["6.12"]
source = "linux-source-6.12"
ack = "android16-6.12"
["6.1"]
source = "linux-source-6.1"
"""
HOOKS = """\
[[place]]
what = "what is sent"
file = "net/ipv4/tcp_output.c"
function = "send_all"
replace = "send(40);"
text = "send(drwa(40));"
"""
MAKEFILE = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 8\n"
MAKE = """\
#!/bin/sh
for word; do case $word in O=*) out=${word#O=};; esac; done
[ -f net/ipv4/tcp_output.c ] && [ -f Makefile ] || exit 3
[ ! -e .config ] || exit 4
# Numbers that have no default, one of which may not be 0
lacking() {
	for name in CONFIG_VENDOR_LINE CONFIG_VENDOR_FROM_1; do
		grep -qs "^config ${name#CONFIG_}$" Kconfig || continue
		[ $name != CONFIG_VENDOR_LINE ] || ! grep -q "^$name=0" "$out/.config" || continue
		echo "$name="
	done
}
case $* in
*olddefconfig) ;;
*listnewconfig) lacking ;;
*defconfig) echo CONFIG_NET=y > "$out/.config" ;;
*net/ipv4/tcp_output.o)
	grep -q 'drwa(40)' net/ipv4/tcp_output.c || exit 5
	# A kernel's make would ask for them without end.
	[ -z "$(lacking)" ] || exit 6 ;;
esac
%s
"""
BUILD_ID = "public static final int VANILLA_ICE_CREAM = 35;\n"


def numbered(what: str, count: int = 60) -> str:
    """A source file with lines of its own."""
    return "".join(f"    {what}({number});\n" for number in range(count))


def in_c(what: str) -> str:
    """A source file with a function that has them."""
    lines = numbered(what).replace("    ", "\t")
    return f"#include <net/tcp.h>\n\nstatic void {what}_all(void)\n{{\n{lines}}}\n"


def in_java(what: str) -> str:
    """A source file with a method that has them, from its second line on."""
    _, lines = numbered(what).split("\n", 1)
    return f"class {what.title()} {{ void {what}All() {{\n{lines}}} }}\n"


def git(folder: Path, *arguments: str) -> str:
    command = ["git", *IDENTITY, *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def commit(folder: Path, message: str) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD").strip()


def replace_line(path: Path, number: int, text: str) -> None:
    """Counts from 0; an empty text takes the line out."""
    lines = path.read_text().splitlines(keepends=True)
    lines[number] = text
    path.write_text("".join(lines))


@dataclass(frozen=True)
class Done:
    """How a run of the tool ended."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class World:
    """The trees of a builder, and a copy of this repository's tool with series for them."""

    top: Path

    @property
    def projects(self) -> list[Path]:
        return [self.top / name for name in (MODULE, BASE, KERNEL)]

    @property
    def trees(self) -> list[str]:
        return ["--aosp", str(self.top / "aosp"), "--kernel", str(self.top / KERNEL)]

    @property
    def program(self) -> str:
        return str(self.top / "drwa/device/drwa")

    def series(self, name: str) -> Path:
        return self.top / "drwa" / name

    def run(self, *arguments: str, prefix: tuple[str, ...] = ()) -> Done:
        done = subprocess.run(
            [*prefix, self.program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={name: value for name, value in os.environ.items() if name != "TARGET_RELEASE"},
        )
        # What was broken into lines for a terminal, as it was said
        said = re.sub(r"\n    (?=\S)", " ", done.stderr)
        return Done(done.returncode, done.stdout, said)

    def drwa(self, command: str, *options: str) -> Done:
        return self.run(command, *self.trees, *options)

    def made(self, project: str = "packages_modules_Connectivity") -> list[str]:
        """The patches of a series as the tree is now, for git am."""
        folder = self.top / f"made{len(list(self.top.glob('made*')))}"
        done = self.drwa("patches", "-o", str(folder))
        assert done.code == 0, done.err
        return [str(path) for path in sorted((folder / project).glob("*.patch"))]

    def snapshot(self) -> dict[str, Any]:
        return {str(folder): snapshot(folder) for folder in self.projects}


def snapshot(folder: Path) -> dict[str, Any]:
    """All that a builder could notice of a project: files, HEAD, refs, the index, leftovers."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith(".git/"):
            if path.name.endswith(".lock") or name.startswith(".git/drwa"):
                found[name] = "left behind"
        elif path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            found[name] = stat.S_IMODE(path.stat().st_mode), path.read_bytes()
        elif name != ".git":
            found[name] = "folder"
    status = ["status", "--porcelain=v2", "--branch", "--show-stash", "--untracked-files=all"]
    found["status"] = git(folder, *status)
    found["refs"] = git(folder, "for-each-ref")
    return found


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its content, git's own too."""
    return {
        str(path): (path.lstat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def build(top: Path) -> World:
    """Three clean projects, and series for them."""
    _install(top / "drwa")
    module, base, kernel = (top / name for name in (MODULE, BASE, KERNEL))

    write(module / SERVICE, in_java("connect"))
    write(module / "tests/run.sh", "#!/bin/sh\n")
    (module / "tests/run.sh").chmod(0o755)
    _begin(module)
    series = top / "drwa/frameworks/series"
    sources = top / "drwa/frameworks/drwa"
    write(sources / Path(POLICY).name, numbered("decide", 5))
    write(sources / Path(SETTING).name, numbered("set", 5))
    calls = series / "packages_modules_Connectivity/0002-calls"
    policy = series / "packages_modules_Connectivity/0001-policy"
    write(policy / "message", "Add the policy\n\nOf all networks.\n")
    write(policy / "places.toml", f'copy = {{ "frameworks/drwa" = "{Path(POLICY).parent}" }}\n')
    write(calls / "message", "Call the policy\n")
    write(calls / "places.toml", CALLS)

    write(base / CARRIER, numbered("key"))
    write(base / "core/java/android/os/Build.java", BUILD_ID)
    write(base / OLD, "old\n")
    (base / LINK).symlink_to("CarrierConfigManager.java")
    _begin(base)
    write(series / "frameworks_base/0001-keys/message", "Add the keys\n")
    write(series / "frameworks_base/0001-keys/places.toml", KEYS)

    write(kernel / "Makefile", MAKEFILE)
    write(kernel / "Kconfig", "# all options\n")
    write(kernel / TCP, in_c("send"))
    _begin(kernel)
    drwa = top / "drwa/kernel"
    write(drwa / "src/net/drwa/law.c", numbered("law", 9))
    write(drwa / "series/0001-law/message", "tcp: the law\n\nOf all windows.\n")
    write(drwa / "series/0001-law/places.toml", 'files = ["net/drwa/law.c"]\n')
    write(drwa / "series/0002-hooks/message", "tcp: obey the law\n")
    write(drwa / "series/0002-hooks/places.toml", HOOKS)
    return World(top)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("template")).top


@pytest.fixture
def world(template: Path, tmp_path: Path) -> World:
    return copy(template, tmp_path / "world")


def copy(template: Path, top: Path) -> World:
    """A world to spoil, whose indexes know its files."""
    shutil.copytree(template, top, symlinks=True)
    world = World(top)
    for folder in world.projects:
        git(folder, "update-index", "--refresh")
    return world


def _install(top: Path) -> None:
    for folder in "doc", "results":
        (top / "device" / folder).mkdir(parents=True)
    for name in "drwa", "check-trees", "matrix", "platform_modules.toml":
        shutil.copy(DEVICE / name, top / "device")
    for name in "bpjson", "drwatool":
        shutil.copytree(DEVICE / name, top / "device" / name)
    # It writes no bytecode itself, and would be compiled at each of many runs.
    compileall.compile_dir(top / "device/drwatool", quiet=1)
    write(top / "frameworks/releases.toml", RELEASES)
    write(top / "kernel/lines.toml", LINES)


def _begin(folder: Path) -> None:
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "As released")


def build_tools(folder: Path, monkeypatch: pytest.MonkeyPatch, said: str = "") -> None:
    """A make that does what a kernel's does, or fails at an object and says so much."""
    for name in ("flex", "bison", "bc", "aarch64-linux-gnu-gcc"):
        write(folder / name, "#!/bin/sh\n")
    write(folder / "said", said)
    fail = f"case $* in *.o) cat '{folder}/said' >&2; exit 1;; esac"
    write(folder / "make", MAKE % (fail if said else ""))
    for path in folder.iterdir():
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
