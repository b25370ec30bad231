# SPDX-License-Identifier: GPL-2.0-only
"""Modules that were built for the kernel without the series load into the one with it."""

from pathlib import Path

import pytest

from conftest import LINES
from drwalab import kernels, symbols
from drwalab.kernels import KernelMissing

# They compile much of the kernel's network twice.
pytestmark = pytest.mark.lines

# An entry of a MIB that all of the network shares, as TCP's counters are
LAST = "	__LINUX_MIB_MAX"


def needs_kernels(line: str) -> None:
    try:
        for flavour in "base", "drwa":
            kernels.find(line, flavour)
    except KernelMissing as e:
        pytest.skip(str(e))


@pytest.mark.parametrize("kernel", LINES)
def test_only_tcps_own_symbols_change(kernel: str) -> None:
    needs_kernels(kernel)
    found = symbols.compare(kernel, print)
    # What nearly all drivers and protocols use is among those that could change.
    assert found.before.keys() > {"register_netdev", "tcp_slow_start", "sk_free"}
    assert len(found.before) > 500
    assert [name for name in found.changed if not name.startswith("tcp_")] == []


def test_a_counter_in_the_shared_mib_would_be_noticed(tmp_path: Path) -> None:
    """struct net reaches it, and so does nearly every symbol."""
    needs_kernels("6.12")
    with kernels.tree_lock("6.12", print):
        tree, _ = kernels.built_tree("6.12", "base", print, symbols.GENKSYMS)
        files = symbols.sources(tree, ["include/uapi/linux/snmp.h"])
        files = [each for each in files if each[1] in ("net/core/dev.c", "net/core/skbuff.c")]
        assert len(files) == 2
        before = symbols.versions(tree, files)
        text = (tree / "include/uapi/linux/snmp.h").read_text()
        (tmp_path / "linux").mkdir()
        (tmp_path / "linux/snmp.h").write_text(text.replace(LAST, f"\tLINUX_MIB_NEW,\n{LAST}", 1))
        found = symbols.Comparison(before, symbols.versions(tree, files, ahead=tmp_path))
    assert {"register_netdev", "netif_rx", "__alloc_skb"} <= set(found.changed)
