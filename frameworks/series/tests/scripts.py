# SPDX-License-Identifier: Apache-2.0
"""The scripts of frameworks/, as modules."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

FRAMEWORKS = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    loader = SourceFileLoader(name.replace("-", "_"), str(FRAMEWORKS / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
