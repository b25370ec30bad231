# SPDX-License-Identifier: Apache-2.0
"""That the suites keep to what a phone's lab expects of them, whatever phone they meet there."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

CTS_TESTS = Path(__file__).resolve().parents[1]
JAVA = sorted(
    path for side in ("device", "host") for path in (CTS_TESTS / side / "src").rglob("*.java")
)
MANIFEST = CTS_TESTS / "device" / "AndroidManifest.xml"
ANDROID = "{http://schemas.android.com/apk/res/android}"
CONFIGURATIONS = [CTS_TESTS / side / "AndroidTest.xml" for side in ("device", "host", "kernel")]

# A test, from its annotation to the end of its method
TEST = re.compile(r"^    @Test\b.*?^    }$", re.DOTALL | re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(CTS_TESTS))


def options(configuration: Path, tag: str = ".") -> list[tuple[str | None, str | None, str | None]]:
    """Name, key and value of each option of the elements of a tag."""
    return [
        (option.get("name"), option.get("key"), option.get("value"))
        for element in ET.parse(configuration).getroot().findall(tag)
        for option in element.findall("option")
    ]


@pytest.mark.parametrize("source", JAVA, ids=name)
def test_no_test_passes_by_returning_early(source: Path) -> None:
    tests = TEST.findall(source.read_text())
    assert not [test for test in tests if re.search(r"\breturn;", test)]


@pytest.mark.parametrize("source", JAVA, ids=name)
def test_no_text_depends_on_the_phones_language(source: Path) -> None:
    bare = r"String\.format\((?!\s*Locale\.ROOT)|\.to(Lower|Upper)Case\(\)"
    assert not re.search(bare, source.read_text())


@pytest.mark.parametrize("source", JAVA, ids=name)
def test_no_phone_is_too_slow(source: Path) -> None:
    """A bound of less than a second says more of what else the phone does."""
    assert not re.search(r'"0\.\d+"|sleep 0?\.\d', source.read_text())


@pytest.mark.parametrize("configuration", CONFIGURATIONS[:2], ids=name)
def test_instant_apps_and_other_users_are_spoken_of(configuration: Path) -> None:
    found = options(configuration)
    for parameter in ("not_instant_app", "secondary_user"):
        assert ("config-descriptor:metadata", "parameter", parameter) in found


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=name)
def test_user_builds_are_left_to_the_tests(configuration: Path) -> None:
    """Without root, tradefed throws by default; the tests themselves skip, with a reason."""
    text = configuration.read_text()
    if "RootTargetPreparer" not in text:
        assert configuration.parent.name == "device"
        return
    root = "target_preparer[@class='com.android.tradefed.targetprep.RootTargetPreparer']"
    assert ("throw-on-error", None, "false") in options(configuration, root)


def test_a_device_without_telephony_is_spared() -> None:
    """What the app declares nobody checks when it is installed; tradefed's controller does."""
    features = [
        (feature.get(f"{ANDROID}name"), feature.get(f"{ANDROID}required", "true"))
        for feature in ET.parse(MANIFEST).getroot().findall("uses-feature")
    ]
    assert features == [("android.hardware.telephony", "true")]
    module = "com.android.tradefed.testtype.suite.module"
    controller = (
        f"object[@type='module_controller'][@class='{module}.DeviceFeatureModuleController']"
    )
    assert options(CONFIGURATIONS[0], controller) == [
        ("required-feature", None, name) for name, _ in features
    ]
