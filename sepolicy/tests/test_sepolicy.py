# SPDX-License-Identifier: Apache-2.0
"""The policy against a small platform of our own, and against real trees if AOSP names one."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SEPOLICY = Path(__file__).parents[1]
JAVA = SEPOLICY.parent / "frameworks"


def check(sepolicy: Path, *trees: Path) -> subprocess.CompletedProcess[str]:
    """Runs with the shebang's Python, which Debian's setools belong to."""
    command = [sepolicy / "check-policy", *trees]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of sepolicy/ to break."""
    return shutil.copytree(SEPOLICY, tmp_path / "sepolicy")


def append(file: Path, text: str) -> None:
    file.write_text(file.read_text() + text + "\n")


def test_small_platform_passes() -> None:
    done = check(SEPOLICY, SEPOLICY / "tests/platform")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "pass  platform user\npass  platform userdebug\n"


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ("allow system_server proc_net:file write;", "system_server can write the knob"),
        ("allow untrusted_app proc_net:file write;", "untrusted_app can write the knob"),
        ("allow priv_app proc_net:file read;", "priv_app can read the counters"),
        ("allow priv_app netd:netlink_route_socket nlmsg_write;", "priv_app can change qdiscs"),
        ("allow priv_app netd_service:service_manager find;", "priv_app can find netd"),
        ("allow priv_app drwa_service:service_manager find;", "priv_app can find the service"),
        ("allow shell fs_bpf_net_shared:file write;", "shell can open the maps for writing"),
        ("allow shell fs_bpf_net_shared:file read;", "shell can open the programs"),
        ("allow untrusted_app bpfloader:bpf map_write;", "untrusted_app can write maps"),
        ("set_prop(untrusted_app, drwa_prop)", "untrusted_app can set the kill switch"),
        ("get_prop(priv_app, drwa_prop)", "priv_app can read the kill switch"),
        ("allow shell proc_net:file getattr;", "not about DRWA: (allow shell"),
    ],
)
def test_too_much_is_found(copy: Path, rule: str, complaint: str) -> None:
    append(copy / "private/shell.te", rule)
    done = check(copy, copy / "tests/platform")
    assert done.returncode == 1, done.stdout + done.stderr
    assert complaint in done.stdout


@pytest.mark.parametrize(
    ("file", "label", "complaint"),
    [
        ("service_contexts", "netd u:object_r:drwa_service:s0", "the platform has netd already"),
        ("service_contexts", "x u:object_r:drwa_prop:s0", "drwa_prop is no service_manager_type"),
        ("property_contexts", "x u:object_r:drwa_prop:s0", "x is not exact with a type"),
        ("property_contexts", "x u:object_r:drwa_prop:s0 bool", "x is not exact with a type"),
        ("property_contexts", "x u:object_r:drwa_prop:s0 exact", "x is not exact with a type"),
        ("property_contexts", "x u:object_r:drwa_prop:s0 prefix bool", "x is not exact with"),
        ("property_contexts", "x u:object_r:drwa_prop:s0 exact boolean", "x is not exact with"),
        ("property_contexts", "x u:object_r:drwa_service:s0", "drwa_service is no property_type"),
    ],
)
def test_wrong_labels_are_found(copy: Path, file: str, label: str, complaint: str) -> None:
    append(copy / "private" / file, label)
    done = check(copy, copy / "tests/platform")
    assert done.returncode == 1, done.stdout + done.stderr
    assert complaint in done.stdout


def test_user_builds_differ(copy: Path) -> None:
    rules = copy / "tests/platform/private/rules.te"
    append(rules, "allow traced_probes debugfs_tracing_debug:file write;")
    done = check(copy, copy / "tests/platform")
    assert "FAIL  platform user\n      traced_probes can record trace events\n" in done.stdout
    assert "pass  platform userdebug" in done.stdout


@pytest.mark.parametrize(
    ("file", "complaint"),
    [
        ("system_server.te", "system_server cannot read the kill switch"),
        ("shell.te", "shell cannot set the kill switch"),
        ("service_contexts", "service_contexts holds no label"),
        ("property_contexts", "property_contexts holds no label"),
        ("genfs_contexts", "netd cannot read the counters"),
    ],
)
def test_what_is_missing_is_found(copy: Path, file: str, complaint: str) -> None:
    (copy / "private" / file).unlink()
    done = check(copy, copy / "tests/platform")
    assert done.returncode == 1, done.stdout + done.stderr
    assert complaint in done.stdout


@pytest.mark.parametrize(
    "rule",
    [
        # One of the platform's own rules, and one that comes with a macro of ours.
        "allow priv_app netd:binder call;",
        "allow vendor_init drwa_prop:file read;",
    ],
)
def test_neverallow_rules_are_enforced(copy: Path, rule: str) -> None:
    append(copy / "private/shell.te", rule)
    done = check(copy, copy / "tests/platform")
    assert done.returncode == 2
    assert "neverallow" in done.stderr


def test_wrong_tree_is_one_line(tmp_path: Path) -> None:
    done = check(SEPOLICY, tmp_path)
    assert done.returncode == 2
    assert re.fullmatch(r"check-policy: .* is no checkout of system/sepolicy\n", done.stderr)


def test_results_are_of_these_rules(copy: Path) -> None:
    done = check(copy)
    assert done.returncode == 0, done.stderr
    append(copy / "private/shell.te", "# changed")
    done = check(copy)
    assert done.returncode == 1
    assert "run with --record" in done.stderr


def test_results_are_of_both_releases() -> None:
    results = json.loads((SEPOLICY / "results.json").read_text())
    assert {"lineage-21.0", "lineage-22.0"} <= {tree["branch"] for tree in results["trees"]}


def test_classes_that_come_with_a_board_api(tmp_path: Path) -> None:
    """Since Android 16's API, the macros that say so come ahead of all that may ask for them."""
    tree = shutil.copytree(SEPOLICY / "tests/platform", tmp_path / "tree")
    vectors = tree / "private/access_vectors"
    (tree / "flagging").mkdir()
    (tree / "flagging/flagging_macros").write_text(
        "define(`starting_at_board_api', `ifelse(eval(target_board_api_level >= $1), 1, `$2')')\n"
    )
    text = vectors.read_text()
    vectors.write_text(text.replace("{ add ", "{ starting_at_board_api(202504, other) add "))
    assert "starting_at" in vectors.read_text()
    done = check(SEPOLICY, tree)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "source", "constant"),
    [
        (
            "property_contexts",
            "drwa/src/com/android/server/connectivity/DrwaSwitch.java",
            "PROPERTY",
        ),
        (
            "service_contexts",
            "service/src/com/android/server/drwa/DrwaService.java",
            "SERVICE_NAME",
        ),
    ],
)
def test_labels_are_of_what_the_code_names(file: str, source: str, constant: str) -> None:
    named = re.findall(rf'{constant} = "(.*)";', (JAVA / source).read_text())
    labels = (SEPOLICY / "private" / file).read_text()
    assert re.findall(r"^([^#\s]\S*)", labels, re.MULTILINE) == named


def test_the_kill_switch_is_of_the_type_that_the_code_reads() -> None:
    sources = "".join(path.read_text() for path in JAVA.glob("*/src/**/*.java"))
    read = re.findall(r"SystemProperties\.get(\w*)\(\s*[\w.]*PROPERTY", sources)
    assert read == ["Boolean"]
    labels = (SEPOLICY / "private/property_contexts").read_text()
    assert re.findall(r"^[^#\s]\S* .* (\w+)$", labels, re.MULTILINE) == ["bool"]


@pytest.mark.skipif("AOSP" not in os.environ, reason="AOSP=DIR names no real tree")
def test_real_tree() -> None:
    done = check(SEPOLICY, Path(os.environ["AOSP"]) / "system/sepolicy")
    assert done.returncode == 0, done.stdout + done.stderr
