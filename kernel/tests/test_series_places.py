# SPDX-License-Identifier: GPL-2.0-only
"""The series finds its places in Debian's sources, changed as Android's and vendors' trees are."""

import functools
import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from drwalab.sources import find_source, read_lines

KERNEL = Path(__file__).resolve().parents[1]
sys.path.append(str(KERNEL.parent / "device"))

from drwatool.compile import compile_objects  # noqa: E402
from drwatool.described import (  # noqa: E402
    RefusedError,
    Series,
    folder_reader,
    place,
    read_series,
    without,
)
from drwatool.places import put  # noqa: E402

LINE = "6.12"
KEPT_LINE = "7.3"
OLDEST_LINE = "5.10"
CLANG = ("clang", "ld.lld", "llvm-ar", "flex", "bison", "bc")
STEPS = read_series(KERNEL / "series", KERNEL / "src")
TCP_H = "include/linux/tcp.h"
MAKEFILE = "net/ipv4/Makefile"
INPUT = "net/ipv4/tcp_input.c"
OUTPUT = "net/ipv4/tcp_output.c"
SELFTESTS = "tools/testing/selftests/net"
READ_ONCE = "READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2])"

Change = tuple[str, str, str]  # of a file, what a regular expression matches, and what it becomes


# What trees of phones have, and Debian's source has not.
BREAKS: dict[str, list[Change]] = {
    "ACK's reserved fields": [
        (TCP_H, r"#include <linux/win_minmax.h>\n", r"\g<0>#include <linux/android_kabi.h>\n"),
        (TCP_H, r"(struct saved_syn \*saved_syn;\n)\};", r"\1\n\tANDROID_KABI_RESERVE(1);\n};"),
    ],
    "6.1 without a backport": [
        (INPUT, r"(int __tcp_grow_window\(.*\n.*\n\{\n\t)const ", r"\1"),
        (OUTPUT, r"cur_win = tcp_receive_window\(tp\);\n", r"\g<0>\n"),
    ],
    "6.6's other form of the window": [
        (
            OUTPUT,
            r"\t(new_win = __tcp_select_window\(sk\);)",
            r"\tu32 \1\n\n\ttrace_hook(sk, &new_win);",
        ),
    ],
    "6.12.23's sample": [(INPUT, r"\(delta > 0\)", "(delta >= 0)")],
    "5.4's plain reads": [
        (INPUT, re.escape(READ_ONCE), READ_ONCE[10:-1]),
        (OUTPUT, re.escape(READ_ONCE), READ_ONCE[10:-1]),
    ],
    "another congestion control": [
        (MAKEFILE, r"obj-\$\(CONFIG_TCP_CONG_BBR\).*\n", r"\g<0>obj-$(BRUTAL) += brutal.o\n"),
    ],
    "no BBR": [(MAKEFILE, r"obj-\$\(CONFIG_TCP_CONG_BBR\).*\n", "")],
    "a vendor's lines beside the places": [
        (INPUT, r"\ttcp_event_data_recv\(sk, skb\);", "\tvendor(sk);\n\\g<0>\n\t\t\tvendor(sk);"),
        (OUTPUT, r"#include <net/tcp.h>\n", r"#include <vendor.h>\n\g<0>#include <vendor2.h>\n"),
    ],
    "a vendor's spaces": [(INPUT, r"update\(tp, delta_us, 1\)", "update( tp,\n\t\tdelta_us, 1 )")],
    "other options of the selftests": [
        (f"{SELFTESTS}/config", r"CONFIG_(NETDEVSIM|TCP_MD5SIG).*\n", "")
    ],
}

# What is told, and nothing changed.
REFUSALS: dict[str, tuple[Change, str]] = {
    "a function renamed": (
        (INPUT, r"\btcp_data_queue\(", "vendor_data_queue("),
        r"tcp_input\.c: data came, the slow path: not found: .* in tcp_data_queue\(\); "
        r"it is in vendor_data_queue\(\)",
    ),
    "a function there twice": (
        (OUTPUT, r"(?s)static u16 tcp_select_window\(.*?\n\}\n", r"#if X\n\g<0>#else\n\g<0>#endif"),
        r"the window that a segment offers: tcp_select_window\(\) is there 2 times",
    ),
    "a statement gone": (
        (INPUT, r"tcp_event_data_recv\(sk, skb\);\n\n\t\t\tif \(TCP", "if (TCP"),
        r"data came, the fast path: not found: after `tcp_event_data_recv\(sk, skb\);`",
    ),
    "a statement there twice": (
        (INPUT, r"(\ttcp_event_data_recv\(sk, skb\);\n)\n\t\t\tif \(TCP", r"\1\g<0>"),
        r"the fast path: found 2 times, after `tcp_event_data_recv\(sk, skb\);`",
    ),
    "a statement under an option": (
        ("net/ipv4/tcp.c", r"\ttp->rcv_rtt_last_tsecr = 0;\n", r"#ifdef CONFIG_X\n\g<0>#endif\n"),
        r"begins anew: `tp->rcv_rtt_last_tsecr = 0;` in line \d+ is inside of an #if",
    ),
    "no TCP at all": (
        (OUTPUT, r"(?s).*", ""),
        "net/ipv4/tcp_output.c: the hooks' header: not found",
    ),
}


def read_with(changes: list[Change], line: str = LINE) -> Callable[[str], str | None]:
    """Debian's source, changed; every change has to find something."""
    found = find_source(read_lines()[line])
    if found is None:
        pytest.skip(f"no source of {line} is unpacked: kernel/lab/lab kernel build --kernel {line}")
    plain = folder_reader(found.path)

    def read(path: str) -> str | None:
        text = plain(path)
        for name, old, new in changes:
            if name == path and text is not None:
                text, count = re.subn(old, new, text)
                assert count, f"{path} has no {old}"
        return text

    return read


def place_with(changes: list[Change]) -> Series:
    return place(STEPS, read_with(changes))


def built(series: Series) -> set[tuple[str, str]]:
    """The places in what a kernel is built of."""
    return {(each.place.file, each.place.what) for each in series.placed if not each.place.optional}


@pytest.fixture(scope="module")
def wanted() -> set[tuple[str, str]]:
    return built(place_with([]))


@pytest.mark.parametrize("name", BREAKS)
def test_each_difference_is_taken(name: str, wanted: set[tuple[str, str]]) -> None:
    assert built(place_with(BREAKS[name])) == wanted


# All that go together.
TOGETHER = [
    three
    for three in itertools.combinations(BREAKS, 3)
    if not {"another congestion control", "no BBR"} <= set(three)
]


@pytest.mark.long
def test_three_differences_are_taken(
    wanted: set[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that few of the differences change is much the same in most of the trees: each place
    is looked for once in each text.
    """
    monkeypatch.setattr("drwatool.described.put", functools.cache(put))
    assert len(TOGETHER) == 112
    for names in TOGETHER:
        changes = [change for name in names for change in BREAKS[name]]
        assert built(place_with(changes)) == wanted, " + ".join(names)


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_by_name(name: str) -> None:
    change, words = REFUSALS[name]
    with pytest.raises(RefusedError, match=words):
        place_with([change])


def test_the_hook_is_where_it_has_to_be() -> None:
    """Behind ACK's fields; ahead of a vendor's hook; none of a vendor's lines is lost."""
    names = ("ACK's reserved fields", "6.6's other form of the window")
    series = place_with([change for name in names for change in BREAKS[name]])
    now = {path: text for _, files in series.steps for path, text in files.items()}
    assert "ANDROID_KABI_RESERVE(1);\n#ifdef CONFIG_TCP_DRWA\n\tstruct drwa drwa;" in now[TCP_H]
    offered = "u32 new_win = tcp_drwa_offer(sk, __tcp_select_window(sk));\n\n\ttrace_hook("
    assert offered in now[OUTPUT]


def files_of(series: Series) -> dict[str, str]:
    """What the series changes, as it is with all of it."""
    return {path: text for _, files in series.steps for path, text in files.items()}


@pytest.mark.parametrize("there", [True, False])
def test_a_clock_in_microseconds_is_looked_for_in_the_socket(there: bool) -> None:
    """Samsung's 5.15 has the route's feature among its headers for programs, and no such socket."""
    changes = [] if there else [(TCP_H, "tcp_usec_ts", "tcp_other")]
    made = files_of(place_with(changes))[MAKEFILE]
    assert ("CFLAGS_tcp_drwa.o += -DTCP_DRWA_USEC_TS" in made) == there


def test_what_4_19_lacks_is_in_the_patches_own_files(wanted: set[tuple[str, str]]) -> None:
    """And goes with them."""
    changes: list[Change] = [
        ("include/linux/build_bug.h", r"static_assert", "vendor_assert"),
        ("include/linux/jump_label_ratelimit.h", "static_key_false_deferred", "vendor_key"),
        ("include/linux/xarray.h", r"\bxa_load\b", "vendor_load"),
    ]
    pristine = read_with(changes)
    series = place(STEPS, pristine)
    added = built(series) - wanted
    assert {path for path, _ in added} == {
        "include/linux/tcp_drwa.h",
        "include/net/tcp_drwa.h",
        "net/ipv4/tcp_drwa_compat.h",
    }
    there = files_of(series)
    before, _ = without(STEPS, lambda path: there.get(path, pristine(path)))
    assert [path for path in there if before(path) != pristine(path)] == []


@pytest.mark.parametrize(
    "line",
    # make test has the sources of the kernel that it boots, and of that whose patches are kept.
    [
        pytest.param(line, marks=[] if line in (LINE, KEPT_LINE) else [pytest.mark.lines])
        for line in read_lines()
    ],
)
def test_taken_out_and_put_in_again(line: str) -> None:
    """As in a tree whose history is one commit: what it was is made of what it is."""
    pristine = read_with([], line)
    there = files_of(place(STEPS, pristine))
    before, _ = without(STEPS, lambda path: there.get(path, pristine(path)))
    assert files_of(place(STEPS, before)) == there
    if line == LINE:
        assert [path for path in there if before(path) != pristine(path)] == []


@pytest.mark.parametrize("name", ["5.4's plain reads", "a vendor's lines beside the places"])
def test_a_guess_at_what_was_there_is_told(name: str) -> None:
    """Several statements become one, which does not tell what it was."""
    pristine = read_with(BREAKS[name])
    there = files_of(place(STEPS, pristine))
    before, guesses = without(STEPS, lambda path: there.get(path, pristine(path)))
    assert list(guesses) == ["0006-hooks"]
    assert [text.split(": ")[1] for text in guesses["0006-hooks"]] == [
        "how far a window may grow",
        "how far a buffer under pressure may grow",
        "how far a buffer may grow",
        "the window scale at the SYN",
    ]
    assert all(f"`{READ_ONCE[10:-1]}`" in text for text in guesses["0006-hooks"][2:])
    # The first form is right in one of the trees, and nothing tells which one it is.
    assert (before(INPUT) == pristine(INPUT)) == (name != "5.4's plain reads")


def test_the_patches_of_a_line(tmp_path: Path) -> None:
    """In place of a tree's, as kernel/mkseries makes them."""
    read_with([], KEPT_LINE)
    made = tmp_path / "made"
    command = [str(KERNEL.parent / "device/drwa"), "patches", "--line", KEPT_LINE, "-o", str(made)]
    done = subprocess.run([sys.executable, *command], check=True, capture_output=True, text=True)
    assert done.stdout.startswith(f"{made}/kernel: 8 patches, for linux-source-{KEPT_LINE} ")
    written = {path.name: path.read_bytes() for path in (made / "kernel").iterdir()}
    reference = KERNEL / "patches" / KEPT_LINE
    assert written == {path.name: path.read_bytes() for path in reference.iterdir()}


@pytest.mark.parametrize("gone", [".gitignore", "config", "Makefile"])
def test_what_a_phone_never_builds_may_be_missing(gone: str, wanted: set[tuple[str, str]]) -> None:
    read = read_with([])
    path = f"{SELFTESTS}/{gone}"
    series = place(STEPS, lambda name: None if name == path else read(name))
    assert built(series) == wanted
    assert any(path in text for text in series.left_out)
    with pytest.raises(RefusedError, match=re.escape(path)):
        place(STEPS, lambda name: None if name == path else read(name), True)


def test_a_kernel_without_kunit_and_headers_of_later_ones(wanted: set[tuple[str, str]]) -> None:
    read = read_with([])
    gone = ("include/kunit/test.h", "include/linux/minmax.h", "include/net/mptcp.h")
    series = place(STEPS, lambda name: None if name in gone else read(name))
    assert [step.name for step, _ in series.steps if "kunit" in step.name] == []
    assert series.left_out[0].startswith("0007-kunit: the tree has no include/kunit/test.h")
    added = {path for _, files in series.steps for path in files}
    assert {"include/linux/minmax.h", "include/net/mptcp.h"} <= added
    assert {what for _, what in built(series)} < {what for _, what in wanted}


@pytest.mark.long
def test_clang_compiles_the_oldest_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With KUnit's suites, which the lab builds by gcc alone; for a phone's processor."""
    found = find_source(read_lines()[OLDEST_LINE])
    if found is None or not all(map(shutil.which, CLANG)):
        pytest.skip(f"no source of {OLDEST_LINE} is unpacked, or none of {', '.join(CLANG)}")
    for name in "LLVM", "CROSS_COMPILE":
        monkeypatch.delenv(name, raising=False)
    for path in found.path.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / ".config").write_text("CONFIG_NET=y\nCONFIG_INET=y\n")
    series = place(STEPS, folder_reader(tmp_path), with_tests=True)
    files = {path: text.encode() for path, text in files_of(series).items()}
    done = compile_objects(tmp_path, files, print, tests=True)
    objects = {path for path in files if re.match(r"net/ipv4/\w+\.c$", path)}
    assert objects > {"net/ipv4/tcp_drwa_core_test.c", "net/ipv4/tcp_drwa_test.c"}
    assert done.startswith(f"compiled {len(objects)} objects for arm64, .config, LLVM=1 ")
