# SPDX-License-Identifier: Apache-2.0
"""The descriptions of the series, what they share with sources, and the script that tries them."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from scripts import FRAMEWORKS, load

POLICY = FRAMEWORKS / "drwa/src/com/android/server/connectivity"
PROJECTS = tomllib.loads((FRAMEWORKS / "releases.toml").read_text())["projects"]

check_aosp = load("check-aosp")

from drwatool import trees  # noqa: E402
from drwatool.described import Step, read_series, sources_of  # noqa: E402
from drwatool.places import put, take  # noqa: E402


def steps_of(project: str) -> list[Step]:
    return read_series(*trees.described_in(project))


def text_of(step: Step) -> str:
    """All that it puts at its places."""
    return "\n".join(form.text for place in step.places for form in place.forms)


@pytest.mark.parametrize("project", PROJECTS)
def test_descriptions_are_in_order(project: str) -> None:
    steps = steps_of(project)
    assert [step.name[:5] for step in steps] == [f"{i + 1:04}-" for i in range(len(steps))]
    for step in steps:
        subject, empty, *lines = step.message.split("\n")
        assert 0 < len(subject) <= 72 and empty == ""
        assert max(map(len, lines)) <= 76, step.name
        assert "Signed-off-by" not in step.message
        assert not re.search(r"[ \t]$", text_of(step), re.MULTILINE), step.name


def test_the_carrier_keys_are_counted() -> None:
    """By the patch's message, and by the pages that tell what it adds."""
    (step,) = steps_of("frameworks_base")
    keys = set(re.findall(r"String (KEY_DRWA_\w+)", text_of(step)))
    count = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")[len(keys)]
    assert f"has {count} settings per carrier" in step.message
    page = (trees.TOP / "device/doc/gms-oem.md").read_text()
    assert f"adds {count} carrier keys" in page
    page = (FRAMEWORKS / "series/README.md").read_text()
    assert f"the {count} carrier-config keys" in page


@pytest.mark.parametrize("project", PROJECTS)
def test_a_file_is_of_one_patch(project: str) -> None:
    files = [path for step in steps_of(project) for path in step.files]
    assert len(files) == len(set(files))
    assert all(source.is_file() for step in steps_of(project) for source in step.files.values())


@pytest.mark.parametrize(
    ("project", "name"),
    [
        ("packages_modules_Connectivity", "kernel/src/net/ipv4/tcp_drwa_core.c"),
        ("packages_modules_Connectivity", "kernel/bpf/drwa.bpf.c"),
        ("packages_modules_Connectivity", "kernel/bpf/android/drwa.c"),
        ("packages_modules_Connectivity", "frameworks/series/packages_modules_Connectivity/new/"),
        ("system_netd", "netd_patches/src/server/drwa/DrwaController.h"),
        ("system_netd", "netd_patches/series/0002-drwa-hooks/places.toml"),
    ],
)
def test_what_a_series_is_made_of(project: str, name: str) -> None:
    """The support matrix goes by it."""
    sources = sources_of(*trees.described_in(project))
    assert any(str(path.relative_to(FRAMEWORKS.parent)).startswith(name) for path in sources)


def test_all_of_the_policy_is_in_the_module() -> None:
    policy, *_ = steps_of("packages_modules_Connectivity")
    in_tree = {path.rpartition("/")[2] for path in policy.files}
    assert in_tree == {path.name for path in POLICY.glob("*.java")}
    assert all(path.startswith("service/src/com/android/server/") for path in policy.files)


def test_kinds_of_trees_end_with_one_that_the_rest_is() -> None:
    releases = trees.releases()["releases"]
    tables = [
        each["trees"]
        for projects in releases.values()
        for each in projects.values()
        if "trees" in each
    ]
    assert tables
    for table in tables:
        kinds = [trees.Kind(**entry) for entry in table]
        assert all(kind.has for kind in kinds[:-1])
        assert not kinds[-1].has and not kinds[-1].refused


def test_maven_has_a_profile_for_every_release() -> None:
    """Maven cannot read the table, so pom.xml says once more what it says."""
    pom = {"": "http://maven.apache.org/POM/4.0.0"}
    found = {}
    for profile in ElementTree.parse(FRAMEWORKS / "pom.xml").iterfind(".//profile", pom):
        name = profile.findtext("id", "", pom).removeprefix("android-")
        found[name] = int(profile.findtext("properties/android.sdk", "0", pom))
    table = tomllib.loads((FRAMEWORKS / "releases.toml").read_text())
    assert found == table["api_levels"]
    assert table["releases"].keys() == table["api_levels"].keys()


def test_hooks_call_what_the_policy_has() -> None:
    hooks = text_of(steps_of("packages_modules_Connectivity")[1])
    called = set(re.findall(r"mDrwaController\.(\w+)\(", hooks))
    source = (POLICY / "DrwaController.java").read_text()
    offered = set(re.findall(r"^    public (?:void|int) (\w+)\(", source, re.MULTILINE))
    assert called == offered


FIRST_CONNECTION = """\
class ConnectivityService {{
    private void updateNetworkInfo(NetworkAgentInfo networkAgent, NetworkInfo info) {{
        if (shouldCreateNetworksImmediately(networkAgent.getCapsNoCopy())) {{
            applyInitialLinkProperties(networkAgent);
        }}
        if (!networkAgent.everConnected() && state == NetworkInfo.State.CONNECTED) {{
            networkAgent.setConnected();
            if ({condition}) {{
                applyInitialLinkProperties(networkAgent);
            }} else {{
                networkAgent.clatd.update();
            }}
            rematchAllNetworksAndRequests();
        }}
    }}
}}
"""


@pytest.mark.parametrize(
    "condition",
    [
        "!shouldCreateNetworksImmediately(networkAgent.getCapsNoCopy())",
        # Since 16 QPR1
        "!(shouldCreateNetworksImmediately(caps)\n                || isEarly(networkAgent))",
    ],
)
def test_a_first_connection_is_told_behind_its_link_properties(condition: str) -> None:
    (found,) = (
        each
        for each in steps_of("packages_modules_Connectivity")[1].places
        if each.what == "a network's first connection"
    )
    before = FIRST_CONNECTION.format(condition=condition)
    after, _ = put(found, before)
    told = "            updateDrwa(networkAgent);\n            rematchAllNetworksAndRequests();\n"
    assert told in after
    assert take(found, after) == before


RATE_LIMIT = """\
class ConnectivityService {{
    ConnectivityService() {{
        mIngressRateLimit =
                ConnectivitySettingsManager.getIngressRateLimitInBytesPerSecond(mContext);
    }}
    private void handleIngressRateLimitChanged() {{
        final long oldIngressRateLimit = mIngressRateLimit;
        mIngressRateLimit = ConnectivitySettingsManager.getIngressRateLimitInBytesPerSecond(
                mContext);
        {loop}
            mDeps.disableIngressRateLimit(networkAgent.linkProperties.getInterfaceName());
        {end}
    }}
}}
"""


@pytest.mark.parametrize(
    ("loop", "end"),
    [
        ("for (final NetworkAgentInfo networkAgent : mNetworkAgentInfos) {", "}"),
        # Since 16
        ("forEachNetworkAgentInfo(networkAgent -> {", "});"),
    ],
)
def test_a_rate_limit_is_told_before_its_filters_change(loop: str, end: str) -> None:
    (found,) = (
        each
        for each in steps_of("packages_modules_Connectivity")[1].places
        if each.what == "the developers' ingress rate limit"
    )
    before = RATE_LIMIT.format(loop=loop, end=end)
    after, _ = put(found, before)
    assert f"        mDrwaController.onIngressRateLimitChanged();\n        {loop}\n" in after
    assert take(found, after) == before


def test_sizes_are_applied_anew_to_a_default_network_alone() -> None:
    """Without one, updateTcpBufferSizes() takes the least for everything."""
    text = text_of(steps_of("packages_modules_Connectivity")[1])
    (callback,) = re.findall(r"mDrwaController\.start\(this::(\w+)\);", text)
    found = re.search(rf"void {callback}\(\) \{{\n(.*?)\n\}}\n", text, re.DOTALL)
    assert found is not None
    (nai,) = re.findall(r"(\w+) = getDefaultNetwork\(\);\n", found[1])
    before, _, _ = found[1].partition("updateTcpBufferSizes(")
    assert f"if ({nai} == null) return;\n" in before


def test_carrier_config_has_the_keys_and_defaults_of_the_policy() -> None:
    def constant(name: str) -> str:
        found = re.search(rf" {name} =\s*([^;]+);", source)
        assert found is not None
        return found[1]

    source = (POLICY / "DrwaCarrierConfig.java").read_text()
    text = text_of(steps_of("frameworks_base")[0])
    assert f"KEY_DRWA_ENABLED_BOOL = {constant('KEY_ENABLED')};" in text
    assert f"KEY_DRWA_LAMBDA_INT = {constant('KEY_LAMBDA')};" in text
    assert f"KEY_DRWA_UPLINK_TARGET_MS_INT = {constant('KEY_UPLINK')};" in text
    assert constant("DEFAULT_UPLINK_MS") == "DrwaUplink.OFF"
    assert "putInt(KEY_DRWA_UPLINK_TARGET_MS_INT, 0);" in text
    milliseconds = f"from {constant('MIN_UPLINK_MS')} to {constant('MAX_UPLINK_MS')}, or 0"
    assert f"milliseconds {milliseconds}" in text
    assert f"putBoolean(KEY_DRWA_ENABLED_BOOL, {constant('DEFAULT_ENABLED')});" in text
    assert f"putInt(KEY_DRWA_LAMBDA_INT, {constant('DEFAULT_LAMBDA')});" in text
    limits = f"from {constant('MIN_LAMBDA')}\n * to {constant('MAX_LAMBDA')}."
    assert limits in text


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one file, and beside it a series of two patches for it."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for text in "one", "two", "three":
        (folder / "file").write_text(f"{text}\n")
        git(folder, "add", "file")
        git(folder, "commit", "--quiet", "--message", text)
    git(folder, "format-patch", "-2", "--output-directory", str(tmp_path / "series"))
    git(folder, "checkout", "--quiet", "--detach", "HEAD~2")
    return folder


def repository(project: Path) -> Any:
    scratch = project.parent / "scratch"
    (scratch / "objects").mkdir(parents=True)
    return check_aosp.Repository(project, scratch)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_applying_leaves_the_project_alone(project: Path) -> None:
    before = contents(project)
    series = sorted((project.parent / "series").iterdir())
    opened = repository(project)
    tree = opened.apply("HEAD", series)
    assert opened.git("show", f"{tree}:file") == b"three\n"
    assert opened.changed("HEAD", tree) == ["file"]
    assert contents(project) == before


def test_a_series_that_does_not_apply_is_named(project: Path) -> None:
    series = sorted((project.parent / "series").iterdir())
    with pytest.raises(check_aosp.CheckError, match=r"0002-three\.patch does not apply to HEAD"):
        repository(project).apply("HEAD", series[1:])


MANAGER = "telephony/java/android/telephony/CarrierConfigManager.java"
KEY = "KEY_BANDWIDTH_NR_NSA_USE_LTE_VALUE_FOR_UPLINK_BOOL"
CARRIER_CONFIG = f"""\
class CarrierConfigManager {{
    public static final String {KEY} =
            "bandwidth_nr_nsa_use_lte_value_for_uplink_bool";
    static {{
        sDefaults.putBoolean({KEY}, false);
    }}
}}
"""


def test_a_series_is_made_for_a_revision(project: Path) -> None:
    (project / MANAGER).parent.mkdir(parents=True)
    (project / MANAGER).write_text(CARRIER_CONFIG)
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "A manager")
    opened = repository(project)
    names, tree = opened.patched("frameworks_base", "HEAD")
    assert names == ["0001-drwa-carrier-config"]
    assert opened.changed("HEAD", tree) == [MANAGER]
    assert "putInt(KEY_DRWA_LAMBDA_INT, 125);" in opened.git("show", f"{tree}:{MANAGER}").decode()


def test_a_place_that_a_revision_lacks_is_named(project: Path) -> None:
    with pytest.raises(check_aosp.CheckError, match=f"{MANAGER}: the keys: the tree has no such"):
        repository(project).patched("frameworks_base", "HEAD")


def test_compilers_complaints_are_compared_without_line_numbers(tmp_path: Path) -> None:
    def say(line: int, text: str) -> list[str]:
        message = f"A.java:{line}: error: cannot find symbol\\n        {text}\\n        ^\\n"
        return ["sh", "-c", f"printf '{message}'; exit 1"]

    old = check_aosp.complaints(say(3, "foo();"), tmp_path)
    assert check_aosp.complaints(say(5, "foo();"), tmp_path) - old == {}
    new = check_aosp.complaints(say(5, "bar();"), tmp_path) - old
    assert list(new) == ["A.java: error: cannot find symbol\n    bar();"]


def test_a_compiler_that_does_not_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(check_aosp.CheckError, match="no such option"):
        check_aosp.complaints(["sh", "-c", "echo no such option; exit 2"], tmp_path)
