# SPDX-License-Identifier: GPL-2.0-only
"""How many ways lead through a function of net/ipv4: McCabe's number, as lizard counts it."""

import re
from pathlib import Path

import pytest

import builds

MOST = 15
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
# Kernel style: a function's braces are in column 0.
FUNCTION = re.compile(r"^\w[^;{}#]*?(\w+)\([^;{}]*\)\s*\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
DECISION = re.compile(r"\b(?:if|for|while|case)\b|&&|\|\||\?")


def complexities(text: str) -> dict[str, int]:
    code = COMMENT.sub("", text)
    return {name: 1 + len(DECISION.findall(body)) for name, body in FUNCTION.findall(code)}


def test_what_is_counted() -> None:
    text = """
static int
one(int a) /* if */
{
	return a;
}

int five(int a, int b)
{
	if (a && b) // or ||
		while (a--)
			b += a ? 1 : 2;
	return b;
}
"""
    assert complexities(text) == {"one": 1, "five": 5}


@pytest.mark.parametrize(
    "source", sorted(builds.CORE.parent.glob("*.[ch]")), ids=lambda source: source.name
)
def test_no_function_is_complex(source: Path) -> None:
    text = source.read_text()
    counted = complexities(text)
    assert len(counted) == text.count("\n{\n")
    assert {name: number for name, number in counted.items() if number > MOST} == {}
