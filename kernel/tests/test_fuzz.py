# SPDX-License-Identifier: GPL-2.0-only
"""A short run of the law's fuzzer, and its corpus."""

from pathlib import Path

import builds
import fuzzing

SEED = 1


def test_fuzz_finds_nothing(tmp_path: Path) -> None:
    """What fuzz_core.c checks holds for the corpus and for inputs made from it."""
    print(f"seed {SEED}")
    found = tmp_path / "found"
    found.mkdir()
    assert fuzzing.fuzz(builds.fuzzer(tmp_path), 200_000, SEED, found, tmp_path) >= 200_000


def test_corpus_stays_small() -> None:
    inputs = list(fuzzing.CORPUS.iterdir())
    assert 10 < len(inputs) < 200
    assert sum(path.stat().st_size for path in inputs) < 100_000
