# SPDX-License-Identifier: GPL-2.0-only
"""Debian's kernel sources: fetched as an ordinary user, unpacked once into the cache.

Standard library only: kernel/mkseries uses this module without the lab's virtual environment.
"""

import fcntl
import lzma
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

Log = Callable[[str], None]

KERNEL_DIR = Path(__file__).resolve().parents[2]

# Neither the guests (UML, x86, arm64) nor the patches need these, and they are two thirds of the
# files. The Kconfig and make files stay, because the configuration reads all of them.
UNUSED = (
    "arch/[!aux]*/*.[chS]",
    "arch/a[!r]*/*.[chS]",
    "arch/ar[!m]*/*.[chS]",
    "arch/arm/*.[chS]",
    "arch/*/*.dts*",
    "drivers/gpu/*.[ch]",
    "drivers/infiniband/*.[ch]",
    "drivers/media/*.[ch]",
    "drivers/net/ethernet/*.[ch]",
    "drivers/net/wireless/*.[ch]",
    "drivers/scsi/*.[ch]",
    "drivers/staging/*.[ch]",
    "sound/*.[ch]",
    "Documentation/devicetree/*",
    "Documentation/translations/*",
    "tools/testing/selftests/[!n]*",
    "tools/testing/selftests/n[!e]*",
    "tools/testing/selftests/net/[!l]*/*",
)


class SourceError(Exception):
    """The kernel source could not be fetched or unpacked."""


@dataclass(frozen=True)
class Line:
    name: str
    source: str
    image: str = ""
    suite: str = ""
    ack: str = ""
    needs: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Source:
    line: Line
    version: str
    path: Path


def read_lines(path: Path = KERNEL_DIR / "lines.toml") -> dict[str, Line]:
    table = tomllib.loads(path.read_text())
    return {name: Line(name, **entry) for name, entry in table.items()}


def cache_dir() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(root) / "drwa"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def locked(name: str, log: Log) -> Iterator[None]:
    """Holds a lock of this user's cache; says so when another process has it."""
    folder = cache_dir() / "locks"
    folder.mkdir(exist_ok=True)
    with (folder / name).open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log(f"waiting for another build ({name})")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def find_source(line: Line) -> Source | None:
    """The unpacked source of a line, if there is one; never reaches for the network."""
    home = cache_dir() / "sources" / line.name
    try:
        version = (home / "version").read_text().strip()
        unused = (home / "unused").read_text()
    except FileNotFoundError:
        return None
    if unused != "\n".join(UNUSED):
        return None
    return Source(line, version, home / "linux")


def get_source(line: Line, log: Log) -> Source:
    with locked(f"source-{line.name}", log):
        return find_source(line) or _install_source(line, log)


def _install_source(line: Line, log: Log) -> Source:
    home = cache_dir() / "sources" / line.name
    home.parent.mkdir(exist_ok=True)
    shutil.rmtree(home, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="new-") as name:
        new = Path(name) / "source"
        new.mkdir()
        log(f"downloading {line.source}")
        package = _download(line, new)
        version = _run(["dpkg-deb", "--field", str(package), "Version"]).strip()
        log(f"unpacking {line.source} {version}")
        _unpack(line, package, new)
        package.unlink()
        (new / "unused").write_text("\n".join(UNUSED))
        (new / "version").write_text(version + "\n")
        new.rename(home)
    return Source(line, version, home / "linux")


def _unpack(line: Line, package: Path, into: Path) -> None:
    excludes = " ".join(f"--exclude='{line.source}/{pattern}'" for pattern in UNUSED)
    member = f"./usr/src/{line.source}.tar.xz"
    script = (
        "set -o pipefail; "
        f'dpkg-deb --fsys-tarfile "$1" | tar -xO {member} | xz -dc -T0 | '
        f'tar -x -C "$2" --wildcards {excludes}'
    )
    _run(["bash", "-c", script, "unpack", str(package), str(into)])
    (into / line.source).rename(into / "linux")


def _download(line: Line, into: Path) -> Path:
    """The package as the machine's apt offers it, or else from the suite that publishes it."""
    try:
        return _apt_download(line, into, [])
    except SourceError as error:
        # A new machine has no package lists, or names a suite that lacks this kernel.
        first = error
    with tempfile.TemporaryDirectory() as name:
        apt = Path(name)
        options, complaints = _private_apt(apt, line.suite)
        try:
            return _apt_download(line, into, options)
        except SourceError as second:
            raise SourceError(
                f"cannot download {line.source}:\n{first}\n"
                f"nor from {line.suite} on the mirror that apt uses:\n{complaints}{second}"
            ) from second


def _apt_download(line: Line, into: Path, options: list[str]) -> Path:
    _run(["apt-get", *options, "--quiet", "download", line.source], cwd=into)
    found = sorted(into.glob(f"{line.source}_*.deb"))
    if not found:
        raise SourceError(f"apt-get download left no {line.source} package")
    return found[-1]


def get_image(line: Line, modules: Sequence[str], log: Log) -> Path:
    """The folder of Debian's own kernel of a line: vmlinuz, and these modules, ready to load."""
    if not line.image:
        raise SourceError(f"{line.name} has no kernel of Debian's: kernel/lines.toml names none")
    home = cache_dir() / "images" / line.name
    with locked(f"image-{line.name}", log):
        if all((home / f"{name}.ko").exists() for name in modules):
            return home
        shutil.rmtree(home, ignore_errors=True)
        home.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent, prefix="new-") as name:
            folder = Path(name)
            log(f"downloading {line.image}")
            for package in _download_image(line, folder):
                log(f"unpacking {package.name}")
                _run(["dpkg-deb", "--extract", str(package), str(folder / "root")])
            new = folder / "image"
            new.mkdir()
            shutil.copy(next((folder / "root").rglob("vmlinuz*")), new / "vmlinuz")
            for module in modules:
                (found,) = (folder / "root").rglob(f"{module}.ko*")
                packed = found.read_bytes()
                content = lzma.decompress(packed) if found.suffix == ".xz" else packed
                (new / f"{module}.ko").write_bytes(content)
            new.rename(home)
    return home


def _download_image(line: Line, into: Path) -> list[Path]:
    """The kernel's package, or since Debian 13 those of its image and of its modules."""
    with tempfile.TemporaryDirectory() as name:
        apt = Path(name)
        options, complaints = _private_apt(apt, line.suite, "amd64")
        # The kernel of this suite, though another one has a newer or a preferred one
        options.append(f"--option=APT::Default-Release={line.suite}")
        try:
            said = _run(["apt-cache", *options, "depends", "--important", line.image])
            found = re.search(r"Depends: (linux-image-\S+)", said)
            if not found:
                raise SourceError(f"{line.image} depends on no kernel:\n{said}")
            said = _run(["apt-cache", *options, "depends", "--important", found[1]])
            parts = re.findall(r"Depends: (linux-(?:binary|modules)-\S+)", said)
            _run(["apt-get", *options, "--quiet", "download", found[1], *parts], cwd=into)
        except SourceError as error:
            raise SourceError(
                f"cannot download {line.image} from {line.suite}:\n{complaints}{error}"
            ) from error
    return sorted(into.glob("*.deb"))


def download_packages(names: Sequence[str], architecture: str, into: Path) -> list[Path]:
    """The packages, with all that they depend on, for a machine that has nothing yet."""
    with tempfile.TemporaryDirectory() as name:
        apt = Path(name)
        options, complaints = _private_apt(apt, "", architecture)
        flags = ["--quiet", "--yes", "--no-install-recommends", "--download-only"]
        try:
            _run(["apt-get", *options, *flags, "install", *names], cwd=apt)
        except SourceError as error:
            packages = ", ".join(names)
            raise SourceError(
                f"cannot download {packages} for {architecture}:\n{complaints}{error}"
            ) from error
        return [
            Path(shutil.move(package, into / package.name))
            for package in sorted((apt / "archives").glob("*.deb"))
        ]


def _private_apt(apt: Path, suite: str, architecture: str = "") -> tuple[list[str], str]:
    """Options for an apt with lists of its own that also knows a suite; and what it complains of.

    They are given on the command line, so that the machine's proxies, certificates and credentials
    keep their effect. With an architecture it takes nothing for installed.
    """
    targets = _run(
        [
            "apt-get",
            "indextargets",
            "--option=APT::Get::IndexTargets::ReleaseInfo=false",
            "--format=$(CREATED_BY) $(REPO_URI) $(RELEASE) $(COMPONENT)",
        ]
    )
    (apt / "sources.list").write_text("\n".join(apt_sources(targets, suite)) + "\n")
    for name in ("lists/partial", "archives/partial"):
        (apt / name).mkdir(parents=True)
    settings = {
        "Dir::State::Lists": apt / "lists",
        "Dir::Cache": apt,
        "Dir::Etc::SourceList": apt / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
    }
    if architecture:
        (apt / "status").touch()
        settings |= {
            "Dir::State::Status": apt / "status",
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            "Debug::NoLocking": "true",
        }
    if os.geteuid() == 0:
        # The private folder is closed to the user that apt would switch to.
        settings["APT::Sandbox::User"] = "root"
    options = [f"--option={key}={value}" for key, value in settings.items()]
    # Its exit code also counts hooks of the system that need root; the download decides.
    update = subprocess.run(
        ["apt-get", *options, "--quiet", "update"],
        cwd=apt,
        capture_output=True,
        text=True,
        check=False,
    )
    return options, update.stderr


def apt_sources(targets: str, suite: str) -> list[str]:
    """Lines of a sources.list: Debian's suites as the machine names them, and the one given.

    Security updates have an archive of their own, beside Debian's on the same mirror.
    """
    keyring = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    lines: list[str] = []
    for target in targets.splitlines():
        kind, uri, release, component = target.split(" ", 3)
        base = uri.rstrip("/")
        if kind != "Packages" or not base.endswith(("/debian", "/debian-security")):
            continue
        archive = base.removesuffix("-security")
        if suite.endswith("-security"):
            archive += "-security"
        wanted = [f"deb {keyring} {base} {release} {component}"]
        if suite:
            wanted.append(f"deb {keyring} {archive} {suite} main")
        lines += [line for line in wanted if line not in lines]
    return lines


def _run(command: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise SourceError(done.stderr.strip() or f"{command[0]} failed ({done.returncode})")
    return done.stdout
