# SPDX-License-Identifier: GPL-2.0-only
"""A short run of the law's fuzzer, and its corpus."""

import shutil
from pathlib import Path

import pytest

import builds
import fuzzing

SEED = 1


def test_fuzz_finds_nothing(tmp_path: Path) -> None:
    """What fuzz_core.c checks holds for the corpus and for inputs made from it."""
    print(f"seed {SEED}")
    found = tmp_path / "found"
    found.mkdir()
    assert fuzzing.fuzz(builds.fuzzer(tmp_path), 100_000, SEED, found, tmp_path) >= 100_000


def test_findings_do_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All shares of a broken law's run are told, and the record stays what it was."""
    broken = tmp_path / builds.CORE.name
    law = builds.CORE.read_text()
    floor = "#define DRWA_FLOOR_SEGMENTS\t"
    assert f"{floor}4" in law
    broken.write_text(law.replace(f"{floor}4", f"{floor}0"))
    corpus, record = tmp_path / "kept", tmp_path / "fuzz.md"
    shutil.copytree(fuzzing.CORPUS, corpus)
    for module, name, value in [
        (builds, "CORE", broken),
        (fuzzing, "OUT", tmp_path),
        (fuzzing, "CORPUS", corpus),
        (fuzzing, "RESULT", record),
        (fuzzing, "CHUNK", 1000),
    ]:
        monkeypatch.setattr(module, name, value)
    with pytest.raises(SystemExit, match="findings: 3; nothing is recorded"):
        fuzzing.main(runs=3000, record=True)
    said = capsys.readouterr().out
    assert all(f"fuzz_core failed with seed {seed}" in said for seed in (1, 2, 3))
    assert not record.exists()


def test_corpus_stays_small() -> None:
    inputs = list(fuzzing.CORPUS.iterdir())
    assert 10 < len(inputs) < 200
    assert sum(path.stat().st_size for path in inputs) < 100_000
