# SPDX-License-Identifier: GPL-2.0-only
"""Builds of the guest kernel, cached by everything that goes into them."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table

from drwalab import units
from drwalab.series import make_series
from drwalab.sources import (
    KERNEL_DIR,
    Line,
    Log,
    Source,
    SourceError,
    cache_dir,
    find_source,
    get_source,
    locked,
    read_lines,
)
from drwatool.described import SeriesError
from drwatool.errors import ConflictError
from drwatool.places import code_of

GUEST_DIR = KERNEL_DIR / "lab" / "guest"
BPF_DIR = KERNEL_DIR / "bpf"
MODULE_DIR = KERNEL_DIR / "module"
# Beside the selftests of both
SELFTEST_COMMON = KERNEL_DIR / "tests" / "selftest_common.sh"
# In the tree of a kernel with modules, what the module is built of, as it lies below kernel/.
MODULE_TREE = "drwa"
MODULE_SOURCES = (
    "module",
    "src/include/linux",
    "src/include/net",
    "src/include/uapi/linux",
    "src/net/ipv4",
    "src/net/sched",
)
MODULES = ("drwa.ko", "sch_drwa_up.ko", "drwa_up_dfc.ko")
# Beside them where the kernel has KUnit
TEST_MODULE = "drwa_up_test.ko"
# What a kernel without modules has of the uplink's gate, below kernel/src.
GATE = (
    "net/sched/drwa_up_core.c",
    "net/sched/drwa_up_dfc.c",
    "net/sched/drwa_up_dfc.h",
    "net/sched/sch_drwa_up.c",
    "include/linux/drwa_up.h",
    "include/uapi/linux/drwa_up.h",
)


@dataclass(frozen=True)
class Flavour:
    """What a kernel is made for, and of; the lab's own additions go into User Mode Linux alone."""

    configs: tuple[str, ...]
    patched: bool = True
    arch: str = "um"
    image: str = "linux"
    cross: str = ""
    # The lab's own patches for this flavour alone, a folder of the guest's
    extra: str = ""

    @property
    def module(self) -> bool:
        """Whether DRWA's module comes with it."""
        return "module" in self.configs

    @property
    def modules(self) -> tuple[str, ...]:
        """What is built beside the kernel."""
        if not self.module:
            return ()
        return (*MODULES, TEST_MODULE) if "kunit" in self.configs else MODULES


FLAVOURS = {
    "base": Flavour(("guest", "um", "uplink"), patched=False),
    "drwa": Flavour(("guest", "um", "uplink")),
    "bpf": Flavour(("guest", "um", "bpf", "nat"), patched=False),
    "module": Flavour(("guest", "um", "module"), patched=False),
    "vendor": Flavour(("guest", "um", "module"), patched=False, extra="vendor"),
    "debug": Flavour(("guest", "um", "bpf", "module", "kunit", "lockdep", "debug")),
    "module-debug": Flavour(("guest", "um", "module", "lockdep", "debug"), patched=False),
    "smp": Flavour(
        ("guest", "qemu", "x86", "bpf", "jit", "kunit", "lockdep"),
        arch="x86_64",
        image="arch/x86/boot/bzImage",
    ),
    "kcsan": Flavour(
        ("guest", "qemu", "x86", "bpf", "jit", "module", "kunit", "kcsan"),
        arch="x86_64",
        image="arch/x86/boot/bzImage",
    ),
    "cost": Flavour(
        ("guest", "qemu", "x86", "bpf", "jit", "module"),
        arch="x86_64",
        image="arch/x86/boot/bzImage",
    ),
    "arm64": Flavour(
        ("guest", "qemu", "arm64", "bpf", "jit", "kunit", "lockdep"),
        arch="arm64",
        image="arch/arm64/boot/Image",
        cross="aarch64-linux-gnu-",
    ),
    "arm64-module": Flavour(
        ("guest", "qemu", "arm64", "module", "lockdep"),
        patched=False,
        arch="arm64",
        image="arch/arm64/boot/Image",
        cross="aarch64-linux-gnu-",
    ),
}
GUESTS = tuple(name for name, flavour in FLAVOURS.items() if flavour.arch == "um")

# What the BPF programs are made of, below kernel/bpf ...
PROGRAMS = ("drwa.bpf.c", "drwa_aqm.h", "drwa.h")
# ... and, the law, below kernel/src.
LAW = (
    "net/ipv4/tcp_drwa_core.c",
    "net/ipv4/tcp_drwa_classic.h",
    "include/linux/tcp_drwa.h",
)

# Raise this when the way of building changes, so that older builds are not taken for new ones.
RECIPE = "1"

FIXED_STAMP = {
    "KBUILD_BUILD_TIMESTAMP": "2012-11-14 00:00:00 UTC",
    "KBUILD_BUILD_USER": "drwa",
    "KBUILD_BUILD_HOST": "lab",
    "KBUILD_BUILD_VERSION": "1",
}


class KernelError(Exception):
    """A build that cannot be asked for, or that failed."""


class KernelMissing(KernelError):
    """No build for the present sources and patches is in the cache, or nothing to load it."""


@dataclass(frozen=True)
class Kernel:
    line: str
    flavour: str
    path: Path
    key: str
    release: str
    debian_version: str
    patch_ids: list[str]


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a build contains."""

    line: str
    flavour: str
    debian_version: str
    compiler: str
    config: str
    files: dict[str, bytes]
    lab_patches: list[tuple[str, bytes]]
    series: list[tuple[str, bytes]]
    # On top of it
    extra: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def patches(self) -> list[tuple[str, bytes]]:
        return self.lab_patches + self.series + self.extra

    @property
    def key(self) -> str:
        digest = hashlib.sha256()
        parts: list[str | bytes] = [RECIPE, self.line, self.flavour, self.debian_version]
        parts += [self.compiler, self.config]
        for name, data in [*sorted(self.files.items()), *self.patches]:
            parts += [name, data]
        for part in parts:
            data = part if isinstance(part, bytes) else part.encode()
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()[:12]


def get_line(name: str) -> Line:
    lines = read_lines()
    if name not in lines:
        raise KernelError(f"unknown kernel '{name}': {units.instead_of(name, lines)}")
    return lines[name]


def make_recipe(source: Source, flavour: str) -> Recipe:
    if flavour not in FLAVOURS:
        raise KernelError(f"unknown flavour '{flavour}': {units.instead_of(flavour, FLAVOURS)}")
    made = FLAVOURS[flavour]
    try:
        series = make_series(KERNEL_DIR, source) if made.patched else []
    except (SeriesError, ConflictError) as error:
        raise KernelError(f"{source.line.name}: {error}") from None
    return Recipe(
        line=source.line.name,
        flavour=flavour,
        debian_version=source.version,
        compiler=_compiler(made.cross),
        config=_config(source.line, made),
        files=_files(made),
        lab_patches=_lab_patches(source.line) if made.arch == "um" else [],
        series=series,
        extra=_read_patches(GUEST_DIR / made.extra) if made.extra else [],
    )


def _config(line: Line, flavour: Flavour) -> str:
    fragments = [(GUEST_DIR / f"{name}.config").read_text() for name in flavour.configs]
    return "".join(fragments + [f"CONFIG_{option}=y\n" for option in line.needs])


def _files(flavour: Flavour) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    if flavour.arch == "um":
        for path in (GUEST_DIR / "net").rglob("*.[ch]"):
            files[str(path.relative_to(GUEST_DIR))] = path.read_bytes()
        files |= {name: (KERNEL_DIR / "src" / name).read_bytes() for name in GATE}
    if flavour.module:
        for folder in MODULE_SOURCES:
            for path in (KERNEL_DIR / folder).iterdir():
                if path.suffix in (".c", ".h") or path.name == "Kbuild":
                    files[f"{MODULE_TREE}/{path.relative_to(KERNEL_DIR)}"] = path.read_bytes()
    return dict(sorted(files.items()))


def _lab_patches(line: Line) -> list[tuple[str, bytes]]:
    """The lab's patches; a line may have a form of its own of any of them, or none: empty."""
    own = dict(_read_patches(GUEST_DIR / "patches" / line.name))
    patches = _read_patches(GUEST_DIR / "patches")
    return [(name, own.get(name, data)) for name, data in patches]


def _read_patches(folder: Path) -> list[tuple[str, bytes]]:
    return [(path.name, path.read_bytes()) for path in sorted(folder.glob("*.patch"))]


def _compiler(cross: str = "") -> str:
    gcc = f"{cross}gcc"
    try:
        done = subprocess.run([gcc, "--version"], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        how = "make test-arch installs it" if cross else "run kernel/lab/packages"
        raise KernelError(f"{gcc} is not installed: {how}") from None
    return done.stdout.splitlines()[0]


def find(line: str, flavour: str) -> Kernel:
    """The cached build for the present sources; raises KernelMissing with the command to run."""
    source = find_source(get_line(line))
    if source is not None:
        kernel = _find(make_recipe(source, flavour))
        if kernel is not None:
            return kernel
    raise KernelMissing(
        f"kernel {line} {flavour} is not built: "
        f"run kernel/lab/lab kernel build --kernel {line} --flavour {flavour}"
    )


def need(program: str, package: str) -> None:
    """Guests use the host's programs; raises KernelMissing without this one."""
    if shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        raise KernelMissing(f"{program} is not installed: run kernel/lab/packages {package}")


def need_of_machines(program: str) -> None:
    """Raises KernelError without a program that builds or is an emulated machine."""
    if shutil.which(program) is None:
        raise KernelError(f"{program} is not installed: make test-arch installs it")


def _home(recipe: Recipe) -> Path:
    return cache_dir() / "kernels" / f"{recipe.line}-{recipe.flavour}-{recipe.key}"


def _find(recipe: Recipe) -> Kernel | None:
    return _read_kernel(_home(recipe))


def _read_kernel(home: Path) -> Kernel | None:
    try:
        info = json.loads((home / "info.json").read_text())
    except FileNotFoundError:
        return None
    return Kernel(
        line=info["line"],
        flavour=info["flavour"],
        path=home / "linux",
        key=info["key"],
        release=info["kernel_release"],
        debian_version=info["debian_version"],
        patch_ids=info["patch_ids"],
    )


def build(line: str, flavour: str, log: Log) -> Kernel:
    """Builds a kernel unless the cache has it; of its log, lines with leading space are make's."""
    if re.search(r"[\s:]", str(cache_dir())):
        raise KernelError(
            f"a kernel does not build below {cache_dir()}, whose name has a space or a colon: "
            "set XDG_CACHE_HOME to another folder"
        )
    source = get_source(get_line(line), log)
    recipe = make_recipe(source, flavour)
    kernel = _find(recipe)
    if kernel is not None:
        return kernel
    checked = FLAVOURS[flavour].patched and FLAVOURS[flavour].arch != "um"
    if checked:
        need_of_machines("sparse")
    apart = "" if flavour in GUESTS else f"-{flavour}"
    with tree_lock(f"{line}{apart}", log):
        kernel = _find(recipe)
        if kernel is not None:
            return kernel
        tree = _prepare_tree(source, recipe, log)
        fresh = not (tree / ".config").exists()
        _configure(tree, recipe)
        amount = "about 1100 files" if fresh else "what has changed"
        log(f"compiling {line} {flavour}: {amount}")
        image = tree / FLAVOURS[flavour].image
        image.unlink(missing_ok=True)
        _make(tree, [_jobs(), image.name], recipe, log)
        if FLAVOURS[flavour].module:
            log(f"compiling {line} {flavour}: the modules")
            _make(tree, ["modules"], recipe, log)
            kunit = ["DRWA_KUNIT=1"] if TEST_MODULE in FLAVOURS[flavour].modules else []
            _make(tree, [f"M={MODULE_TREE}/module", *kunit, "modules"], recipe, log)
        if checked:
            _check_series(tree, recipe, log)
        return _install(tree, recipe)


def built_tree(line: str, flavour: str, log: Log, *targets: str) -> tuple[Path, Recipe]:
    """Where a guest's kernel was compiled, and make's targets there; the caller holds its lock.

    A target is what make is told at once, words that set variables included.
    """
    source = get_source(get_line(line), log)
    recipe = make_recipe(source, flavour)
    tree = _prepare_tree(source, recipe, log)
    image = FLAVOURS[flavour].image
    if not (tree / image).exists():
        _configure(tree, recipe)
        targets = (image, *targets)
    for target in targets:
        _make(tree, [_jobs(), *target.split()], recipe, log)
    return tree, recipe


def tree_lock(line: str, log: Log) -> AbstractContextManager[None]:
    """The guests of a line take objects from each other."""
    return locked(f"build-{line}", log)


def _check_series(tree: Path, recipe: Recipe, log: Log) -> None:
    """Fails when gcc with W=1, or sparse, warns about a file of the series."""
    source = KERNEL_DIR / "src"
    sources = {str(path.relative_to(source)) for path in source.rglob("*.[ch]")}
    # The gate is a module of its own, and so are its tests.
    ours = sorted(path for path in sources - set(GATE) if not path.startswith("net/sched/"))
    objects = [f"{path[:-1]}o" for path in ours if path.startswith("net/") and path.endswith(".c")]
    log(f"checking {recipe.line} {recipe.flavour}: W=1, sparse")
    output = _make(tree, ["W=1", "C=2", "CF=-D__CHECK_ENDIAN__", *objects], recipe, log)
    warning = re.compile(rf"^\S*({'|'.join(map(re.escape, ours))}):\d+:.*(warning|error):")
    found = [line for line in output.read_text().splitlines() if warning.match(line)]
    if found:
        raise KernelError(f"{recipe.line} {recipe.flavour}:\n" + "\n".join(found))


def _install(tree: Path, recipe: Recipe) -> Kernel:
    home = _home(recipe)
    home.parent.mkdir(exist_ok=True)
    info = {
        "line": recipe.line,
        "flavour": recipe.flavour,
        "key": recipe.key,
        "debian_version": recipe.debian_version,
        "kernel_release": (tree / "include/config/kernel.release").read_text().strip(),
        "patch_ids": [patch_id(data) for _, data in recipe.series],
        "config_sha256": hashlib.sha256((tree / ".config").read_bytes()).hexdigest(),
    }
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="new-") as name:
        new = Path(name) / "kernel"
        new.mkdir()
        shutil.copy2(tree / FLAVOURS[recipe.flavour].image, new / "linux")
        for name in FLAVOURS[recipe.flavour].modules:
            shutil.copy2(tree / MODULE_TREE / "module" / name, new)
        (new / "info.json").write_text(json.dumps(info, indent=2) + "\n")
        new.rename(home)
    kernel = _read_kernel(home)
    assert kernel is not None
    return kernel


def patch_id(patch: bytes) -> str:
    """Of the lines that a patch adds and takes away, in hexadecimal.

    Blanks, line numbers and C's comments do not count: a result holds whatever these say.
    """
    lines: dict[str, str] = {}
    name = ""
    for line in patch.decode(errors="replace").splitlines():
        if line.startswith("diff --git "):
            name = line.rpartition(" b/")[2]
        elif name and line[:1] in "+-" and not line.startswith(("+++ ", "--- ")):
            file = f"{line[:1]}{name}"
            lines[file] = lines.get(file, "") + line[1:] + "\n"
    digest = hashlib.sha256()
    for file, text in sorted(lines.items()):
        if code := code_of(text) if file.endswith((".c", ".h")) else "".join(text.split()):
            digest.update(f"{file}\0{code}\0".encode())
    return digest.hexdigest()


def _tree(line: str, flavour: str) -> Path:
    return cache_dir() / "trees" / f"{line}-{flavour}"


def _state(tree: Path) -> Path:
    """What was done to a tree: the stamp of its origin and the very patches applied.

    A tree without the stamp was left in the middle of a change and cannot be trusted.
    """
    return tree / ".drwa"


def _stamp(recipe: Recipe) -> str:
    names = " ".join(sorted(recipe.files))
    return f"{recipe.debian_version}\n{recipe.compiler}\n{names}\n"


def _usable(tree: Path, recipe: Recipe) -> bool:
    try:
        return (_state(tree) / "stamp").read_text() == _stamp(recipe)
    except FileNotFoundError:
        return False


def _prepare_tree(source: Source, recipe: Recipe, log: Log) -> Path:
    tree = _tree(recipe.line, recipe.flavour)
    if _usable(tree, recipe):
        try:
            change_tree(tree, recipe)
            return tree
        except KernelError:
            log("starting again from an unpatched source")
    shutil.rmtree(tree, ignore_errors=True)
    tree.parent.mkdir(exist_ok=True)
    # A tree with the same configuration brings most objects ready made.
    others = [
        _tree(recipe.line, flavour)
        for flavour, made in FLAVOURS.items()
        if flavour != recipe.flavour and made.configs == FLAVOURS[recipe.flavour].configs
    ]
    origin = next((other for other in others if _usable(other, recipe)), source.path)
    log(f"copying the source of {recipe.line}")
    subprocess.run(["cp", "-a", str(origin), str(tree)], check=True)
    change_tree(tree, recipe)
    return tree


def change_tree(tree: Path, recipe: Recipe) -> None:
    """Brings a tree to the recipe's patches and files; touches only what differs.

    Files that come out as they were get their old time back, so that make leaves them alone.
    """
    state = _state(tree)
    applied_dir = state / "applied"
    applied_dir.mkdir(parents=True, exist_ok=True)
    (state / "stamp").unlink(missing_ok=True)
    applied = sorted(applied_dir.iterdir())
    wanted = [data for _, data in recipe.patches]
    same = 0
    while same < min(len(applied), len(wanted)) and applied[same].read_bytes() == wanted[same]:
        same += 1

    undo = applied[same:]
    touched = _touched([path.read_bytes() for path in undo] + wanted[same:])
    before = {name: _content_and_times(tree / name) for name in touched}
    for path in reversed(undo):
        _patch(tree, path.read_bytes(), path.name, "--reverse")
        path.unlink()
    for number, (name, data) in enumerate(recipe.patches[same:], start=same + 1):
        _patch(tree, data, name)
        (applied_dir / f"{number:04}-{name}").write_bytes(data)
    for name, old in before.items():
        now = _content_and_times(tree / name)
        if old and now and old[0] == now[0]:
            os.utime(tree / name, ns=(old[1], old[1]))

    for name, data in recipe.files.items():
        target = tree / name
        if not target.exists() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    (state / "stamp").write_text(_stamp(recipe))


def _touched(patches: Iterable[bytes]) -> set[str]:
    header = re.compile(rb"^(?:---|\+\+\+) [^/\s]+/(\S+)", re.MULTILINE)
    return {match.decode() for patch in patches for match in header.findall(patch)}


def _content_and_times(path: Path) -> tuple[bytes, int] | None:
    try:
        return path.read_bytes(), path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _patch(tree: Path, patch: bytes, name: str, *options: str) -> None:
    done = subprocess.run(
        ["patch", "-p1", "--force", "--no-backup-if-mismatch", *options],
        cwd=tree,
        input=patch,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise KernelError(f"{name} does not apply:\n{done.stdout.decode().strip()}")


def _configure(tree: Path, recipe: Recipe) -> None:
    fragment = _state(tree) / "config"
    fragment.write_text(recipe.config)
    _make(tree, [f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig"], recipe, lambda _: None)
    lost = lost_options(recipe, tree)
    if lost:
        raise KernelError(
            f"the configuration of {recipe.line} {recipe.flavour} lost {', '.join(lost)}: "
            "an option that it depends on is not in kernel/lab/guest/"
            f"{{{','.join(FLAVOURS[recipe.flavour].configs)}}}.config"
        )


def lost_options(recipe: Recipe, tree: Path) -> list[str]:
    """Options of the fragment that the tree knows and yet did not take."""
    got = set((tree / ".config").read_text().splitlines())
    got |= {f"CONFIG_{option}=y" for option in get_line(recipe.line).without}
    lost = [x for x in recipe.config.splitlines() if x.endswith("=y") and x not in got]
    if lost:
        # Lines differ in what they have; only the series brings TCP_DRWA, and it must.
        known = _defined_options(tree)
        if FLAVOURS[recipe.flavour].patched:
            known.add("CONFIG_TCP_DRWA=y")
        lost = [line for line in lost if line in known]
    return lost


def _defined_options(tree: Path) -> set[str]:
    definition = re.compile(r"^(?:menu)?config (\w+)$", re.MULTILINE)
    return {
        f"CONFIG_{name}=y"
        for path in tree.rglob("Kconfig*")
        if path.is_file()
        for name in definition.findall(path.read_text(errors="replace"))
    }


def _jobs() -> str:
    """One more than there are CPUs: while one waits, for the disk or for its make, none idles."""
    return f"-j{len(os.sched_getaffinity(0)) + 1}"


def _make(tree: Path, arguments: list[str], recipe: Recipe, log: Log) -> Path:
    """Runs make with its output in a log file, and returns that; shows its end on failure."""
    folder = cache_dir() / "logs"
    folder.mkdir(exist_ok=True)
    path = folder / f"{recipe.line}-{recipe.flavour}.log"
    # What the calling make passes down (its flags, its job server) is not for this one.
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ARCH", "CROSS_COMPILE")
    }
    environment |= FIXED_STAMP | {"LC_ALL": "C"}
    made = FLAVOURS[recipe.flavour]
    # Kconfig writes pahole's version down; a kernel of the same key may not depend on whether the
    # machine has it.
    make = ["make", "PAHOLE=nopahole", f"ARCH={made.arch}", f"CROSS_COMPILE={made.cross}"]
    make.append("LOCALVERSION=")
    tail: deque[str] = deque(maxlen=25)
    with (
        path.open("w") as file,
        subprocess.Popen(
            [*make, *arguments],
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            # Lines of a quiet build ("  CC  file.o") say nothing about a failure.
            if re.match(r"  [A-Z]", line):
                log(line.rstrip())
            else:
                tail.append(line)
    if process.returncode:
        raise KernelError(
            f"make {arguments[-1]} failed for {recipe.line} {recipe.flavour}; "
            f"from {path}:\n" + "".join(tail).rstrip()
        )
    return path


def agent() -> Path:
    """The guest's agent, compiled statically so that it depends on nothing in the guest."""
    sources = sorted(GUEST_DIR.glob("*.[ch]"))
    digest = hashlib.sha256(_compiler().encode())
    for path in sources:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    home = cache_dir() / "agent" / digest.hexdigest()[:12]
    binary = home / "agent"
    if binary.exists():
        return binary
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as name:
        new = Path(name) / "agent"
        command = ["gcc", "-O2", "-Wall", "-Wextra", "-static", "-o", str(new)]
        command += [*(str(path) for path in sources if path.suffix == ".c"), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise KernelError(f"the guest's agent does not compile:\n{done.stderr.strip()}")
        new.rename(binary)
    return binary


def programs_id() -> str:
    """Of what the BPF programs are made of: results name them by it, as patches by patch_id()."""
    sources = [BPF_DIR / name for name in PROGRAMS]
    return _id_of([*sources, *(KERNEL_DIR / "src" / name for name in LAW)])


def gate_id() -> str:
    """Likewise of the uplink's gate, which no patch has"""
    return _id_of(KERNEL_DIR / "src" / name for name in GATE)


def _id_of(sources: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sources:
        digest.update(f"{path.name}\0{code_of(path.read_text())}\0".encode())
    return digest.hexdigest()[:12]


def told_patches(release: str, patch_ids: Sequence[str]) -> str:
    """A kernel as records name it, and lab documents looks for it"""
    return f"{release}, patches {', '.join(each[:12] for each in patch_ids)}"


def told_sources(programs: bool, gate: bool = False) -> str:
    """Which BPF programs and gate a record is of, as sentences behind others, if it used them"""
    told = f" BPF programs {programs_id()}." if programs else ""
    return told + (f" Gate {gate_id()}." if gate else "")


def bpf() -> Path:
    """The folder of the BPF programs and their loader, made of the present sources."""
    folders = (BPF_DIR, BPF_DIR / "include/linux", KERNEL_DIR / "tests/include/linux")
    sources = sorted(path for folder in folders for path in folder.glob("*.[ch]"))
    sources += [BPF_DIR / "Makefile", *(KERNEL_DIR / "src" / name for name in LAW)]
    digest = hashlib.sha256(_compiler().encode())
    for path in sources:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    home = cache_dir() / "bpf" / digest.hexdigest()[:12]
    home.parent.mkdir(parents=True, exist_ok=True)
    with locked("bpf", lambda _: None), tempfile.TemporaryDirectory(dir=home.parent) as name:
        if home.exists():
            return home
        new = Path(name) / "new"
        done = subprocess.run(
            ["make", "--directory", BPF_DIR, f"OUT={new}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise KernelError(
                f"the BPF programs do not compile:\n{done.stderr.strip()}\n"
                "kernel/lab/packages clang libbpf-dev libelf-dev installs what they need"
            )
        new.rename(home)
    return home


# --- Command line: lab kernel ...

kernel_app = typer.Typer(
    help="Build the guest kernels and list those that are ready.", no_args_is_help=True
)


class Progress:
    """Shows what a build is doing: a live line on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console, status: Status) -> None:
        self.console = console
        self.status = status
        self.start = self.reported = time.monotonic()
        self.files = 0

    def __call__(self, line: str) -> None:
        now = time.monotonic()
        elapsed = f"{int(now - self.start) // 60}:{int(now - self.start) % 60:02}"
        if not line.startswith(" "):
            self.files = 0
            self.console.print(f"{elapsed}  {line}", highlight=False, markup=False)
            self.status.update(line)
            return
        self.files += 1
        self.status.update(f"{elapsed}  {self.files} files, {line.split()[-1]}")
        if not self.console.is_terminal and now - self.reported >= 20:
            self.reported = now
            self.console.print(f"{elapsed}  {self.files} files", highlight=False)


@kernel_app.command("build")
def build_command(
    kernel: Annotated[
        str, typer.Option(help="Kernel line as in kernel/lines.toml, such as 6.12, or all.")
    ] = "6.12",
    flavour: Annotated[
        str,
        typer.Option(
            help="Guests of the lab: drwa, with DRWA's patches; base, without; bpf, base that "
            "takes BPF programs; module, base with drwa.ko; vendor, that at vendor hooks; debug, "
            "drwa with KASAN, UBSAN, lockdep, kmemleak and KUnit; module-debug, module with the "
            "same; all of these: all. Machines for lab machine: smp, arm64 and arm64-module, with "
            "lockdep; kcsan; cost."
        ),
    ] = "drwa",
) -> None:
    """Build a guest kernel; done at once when the cache has it."""
    console = Console(stderr=True)
    lines = list(read_lines()) if kernel == "all" else [kernel]
    flavours = GUESTS if flavour == "all" else (flavour,)
    try:
        for line in lines:
            get_line(line)
        if flavours[0] not in FLAVOURS:
            raise KernelError(f"unknown flavour '{flavour}': {units.instead_of(flavour, FLAVOURS)}")
    except KernelError as error:
        typer.echo(f"lab: {error}", err=True)
        raise typer.Exit(2) from None
    try:
        with console.status("") as status:
            for line in lines:
                for each in flavours:
                    status.update(f"{line} {each}")
                    built = build(line, each, Progress(console, status))
                    print(f"{line} {each}: {built.path}", flush=True)
            status.update("guest agent")
            agent()
    except (KernelError, SourceError) as error:
        typer.echo(f"lab: {error}", err=True)
        raise typer.Exit(1) from None


@kernel_app.command("list")
def list_command() -> None:
    """List the kernels in the cache; those for the present sources are marked."""
    table = Table(
        "line",
        "flavour",
        "key",
        "release",
        "Debian",
        "patches",
        "current",
        box=None,
        pad_edge=False,
    )
    for line in read_lines():
        for flavour in FLAVOURS:
            try:
                current = find(line, flavour).key
            except KernelError:
                current = ""
            for home in sorted((cache_dir() / "kernels").glob(f"{line}-{flavour}-*")):
                kernel = _read_kernel(home)
                if kernel is not None:
                    table.add_row(
                        kernel.line,
                        kernel.flavour,
                        kernel.key,
                        kernel.release,
                        kernel.debian_version,
                        str(len(kernel.patch_ids)),
                        "yes" if kernel.key == current else "",
                    )
    Console().print(table)
