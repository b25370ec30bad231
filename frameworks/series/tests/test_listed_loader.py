# SPDX-License-Identifier: Apache-2.0
"""The platform's loader after Android 16, which has a list in Rust and takes objects by libbpf.

No machine here builds it. loaders/listed.rs has the form of the list, and is compiled with our
places; loaders/listed.py does with a list what the loader does, in a guest. The object is what
Soong's rule makes of ours, and netd's own test then runs on what was pinned.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from drwalab import guest, kernels
from drwatool import trees
from drwatool.described import read_series
from placing import assert_reverts, placed

sys.path.append(str(trees.TOP / "netd_patches" / "tests"))
import building

STEPS = read_series(*trees.described_in("system_bpf"))
LOADERS = Path(__file__).parent / "loaders"
LOADER, RULE = "loader/bpfloader.rs", "drwa/Android.bp"
WITH_FOLDER = (LOADERS / "listed.rs").read_text()
# An older form, whose files are whole paths
WITHOUT_FOLDER = (
    WITH_FOLDER.replace("    dir: &'static str,\n", "")
    .replace('        dir: "/etc/bpf/",\n', "")
    .replace('filename: "theirs.bpf"', 'filename: "/etc/bpf/theirs.bpf"')
    .replace('"{}{} prefix={} critical={}", file.dir, ', '"{} prefix={} critical={}", ')
)
FORMS = {"with folders": WITH_FOLDER, "with paths": WITHOUT_FOLDER}
# /vendor's alone are left to this one.
VENDORS = 'sectionType sectionNameTypes[] = {\n        {"skfilter/", SOCKET_FILTER},\n};\n'


def tree(form: str) -> dict[str, str]:
    return {LOADER: FORMS[form], "loader/Loader.cpp": VENDORS}


def listed(text: str, folder: Path) -> list[str]:
    """What the model prints, compiled."""
    (folder / "loader.rs").write_text(text)
    command = ["rustc", "--edition=2021", "--cap-lints=warn", "loader.rs", "-o", "loader"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return subprocess.check_output([folder / "loader"], text=True).splitlines()


@pytest.mark.parametrize("form", FORMS)
def test_ours_is_behind_theirs_in_the_list(form: str, tmp_path: Path) -> None:
    before = listed(FORMS[form], tmp_path)
    _, after = placed(STEPS, tree(form))
    *theirs, ours, vendor = listed(after[LOADER], tmp_path)
    assert [*theirs, vendor] == before
    assert ours.split(" map=")[0] == "/etc/bpf/drwa/drwa.bpf prefix= critical=false skip=false"


@pytest.mark.parametrize("form", FORMS)
def test_nothing_else_of_the_loader_changes(form: str) -> None:
    series, after = placed(STEPS, tree(form))
    assert len(series.steps) == 2 and not series.left_out
    assert after["loader/Loader.cpp"] == VENDORS
    assert "libbpf_prog {" in after[RULE] and 'relative_install_path: "drwa",' in after[RULE]
    assert "sub_dir" not in after[RULE]
    assert_reverts(STEPS, tree(form))


# --- In a guest

THEIRS = """\
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, int);
} their_map SEC(".maps");
SEC("skfilter/theirs") int skfilter_theirs(struct __sk_buff *skb)
{
	int key = 0;

	return bpf_map_lookup_elem(&their_map, &key) ? skb->len : 0;
}
char _license[] SEC("license") = "GPL";
"""
# What may be wrong with ours, as more of its source; what the loader then says
FATES = {
    "good": ("", ""),
    "refused": (
        'SEC("tc") int schedcls_wrong(struct __sk_buff *skb) { return *(int *)(long)skb->len; }',
        "cannot be loaded",
    ),
    "unknown": (
        'SEC("tc") int schedcls_other(struct __sk_buff *skb) { return skb->len; }',
        "Descriptor for schedcls_other not found!",
    ),
    "cut": ("", "cannot be opened"),
    "missing": ("", ""),
}
# Each fate has a file system of its own for pins.
SCRIPT = """\
mkdir -p root/etc/bpf/drwa
cp theirs.bpf root/etc/bpf
for fate in {fates}; do
	rm -f root/etc/bpf/drwa/drwa.bpf
	if [ -e $fate.bpf ]; then cp $fate.bpf root/etc/bpf/drwa/drwa.bpf; fi
	mount -t bpf bpf /sys/fs/bpf
	echo "fate $fate"
	python3 listed.py root < list
	echo "end $?"
	ls /sys/fs/bpf | sed 's/^/pin /'
	if [ $fate = good ]; then
		ip link show dummy0 > /dev/null 2>&1 || ip link add dummy0 type dummy
		ip link set dummy0 up
		ip addr add 192.0.2.1/24 dev dummy0
		ip neigh add 192.0.2.2 dev dummy0 lladdr 02:00:00:00:00:02 nud permanent
		./drwa_programs_kernel_test --gtest_color=no || :
	fi
	umount /sys/fs/bpf
done
echo end of the script
"""
PINS = {
    *(f"map_drwa_drwa_{name}" for name in ("devs", "queues", "counts", "flows", "udp")),
    *(f"prog_drwa_schedcls_{hook}_drwa" for hook in ("ingress", "egress")),
}
THEIR_PINS = {"map_theirs_their_map", "prog_theirs_skfilter_theirs"}


def compiled(folder: Path, source: Path, flags: list[str], name: str) -> Path:
    """As Soong's rule does it."""
    multiarch = subprocess.check_output(["gcc", "-print-multiarch"], text=True).strip()
    unstripped, stripped = folder / f"{name}.unstripped", folder / f"{name}.bpf"
    command = ["clang", "--target=bpf", "-c", "-O2", "-Wall", "-Werror", "-Wextra", "-g"]
    command += ["-DENABLE_LIBBPF", f"-I{source.parent}", *flags]
    command += ["-idirafter", f"/usr/include/{multiarch}", "-o", str(unstripped), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sections = [f"--remove-section={name}" for name in (".rel.BTF", ".rel.BTF.ext", ".BTF.ext")]
    subprocess.run(
        ["llvm-strip", "--strip-unneeded", *sections, unstripped, "-o", stripped], check=True
    )
    return stripped


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Theirs and ours, with each fate."""
    folder = tmp_path_factory.mktemp("objects")
    (folder / "theirs.c").write_text(THEIRS)
    made = [compiled(folder, folder / "theirs.c", ["-mcpu=v2"], "theirs")]
    copies = trees.TOP / "frameworks/series/system_bpf/0001-drwa-bpf/places.toml"
    for source, target in tomllib.loads(copies.read_text())["copy"].items():
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (trees.TOP / source).is_dir() else shutil.copy
        copy(trees.TOP / source, folder / target)
    found = re.findall(r'"(-[^"]+)"', (folder / RULE).read_text())
    # Soong gives them to a shell
    flags = [word for flag in found for word in flag.split()]
    source = folder / "drwa/drwa.c"
    text = source.read_text()
    for fate, (more, _) in FATES.items():
        if fate != "missing":
            source.write_text(f"{text}\n{more}\n")
            made.append(compiled(folder, source, flags, fate))
        if fate == "cut":
            made[-1].write_bytes(made[-1].read_bytes()[:1000])
    return made


@pytest.fixture(scope="module", params=["6.12", pytest.param("6.1", marks=pytest.mark.lines)])
def said(
    request: pytest.FixtureRequest, objects: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """What the loader did with each fate, and what was pinned."""
    try:
        kernel = kernels.find(request.param, "bpf")
    except kernels.KernelMissing as e:
        pytest.skip(str(e))
    folder = tmp_path_factory.mktemp("list")
    _, after = placed(STEPS, tree("with folders"))
    (folder / "list").write_text("\n".join(listed(after[LOADER], folder)) + "\n")
    test = building.make("drwa_programs_kernel_test")
    files = [*objects, folder / "list", LOADERS / "listed.py", test]
    script = SCRIPT.format(fates=" ".join(FATES))
    ended = guest.run_script(script, kernel, kernels.agent(), files)
    console = (ended / "console").read_text()
    shutil.rmtree(ended)
    assert "\nend of the script\n" in console, console
    parts = re.split(r"^fate (\w+)\n", console, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.guest
@pytest.mark.parametrize("fate", FATES)
def test_whatever_is_wrong_with_ours_theirs_is_loaded(said: dict[str, str], fate: str) -> None:
    text = said[fate]
    pinned = set(re.findall(r"^pin (\S+)$", text, re.MULTILINE))
    assert "on to /vendor\nend 0\n" in text, text
    assert THEIR_PINS <= pinned
    if fate == "good":
        assert pinned - THEIR_PINS == PINS, text
    complaint = FATES[fate][1]
    errors = re.findall(r"^Error when loading (.*)$", text, re.MULTILINE)
    assert len(errors) == bool(complaint), text
    assert all(line.startswith("/etc/bpf/drwa/") and complaint in line for line in errors)


@pytest.mark.guest
def test_netd_has_what_was_pinned(said: dict[str, str]) -> None:
    names = building.gtest_names(trees.TOP / "netd_patches/tests/DrwaProgramsKernelTest.cpp")
    passed = re.findall(r"^\[       OK \] (\S+) \(", said["good"], re.MULTILINE)
    assert passed == names, said["good"]
