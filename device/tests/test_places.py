# SPDX-License-Identifier: Apache-2.0
"""Where places are found, what is put there, and what is refused."""

import tomllib

import pytest

from drwatool.places import Place, PlaceError, put, read_places, take, wanted

SOURCE = """\
#ifndef _A_H
#define _A_H
#include <net/tcp.h>

struct sock_a {
	int first;
};

static int grow(struct sock *sk)
{
	struct net *net = sock_net(sk);
	int max;

	/* max = READ_ONCE(net->rmem); */
	max = READ_ONCE(net->rmem);
	if (max > 3)
		update(sk,
			max);
	if (th->ack) {
		init(sk);
	}
	init(sk);
	if (!empty(&sk->queue)) {
		drain(sk);
	} else {
		wait(sk);
	}
	return max;
}

int grow_more(void);
#endif
"""


def place(text: str, file: str = "a.c") -> Place:
    (found,) = read_places(tomllib.loads(f'[[place]]\nwhat = "it"\nfile = "{file}"\n{text}'))
    return found


def changed(text: str, source: str = SOURCE, file: str = "a.c") -> list[str]:
    """The lines that a place adds, after it has given back what it changed."""
    described = place(text, file)
    after, placed = put(described, source)
    assert placed.lines
    assert take(described, after) == source
    return [line for line in after.split("\n") if line not in source.split("\n")]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('after = "#include <net/tcp.h>"\ntext = "#include <b.h>"', ["#include <b.h>"]),
        ('end_of = "struct sock_a"\ntext = "int last;"', ["\tint last;"]),
        ('function = "grow"\nafter = "max=READ_ONCE( net->rmem );"\ntext = "a();"', ["\ta();"]),
        (
            'function = "grow"\nbefore = "return max;"\ntext = "if (b)\\n\\tc();"',
            ["\tif (b)", "\t\tc();"],
        ),
        # Behind the whole of a statement.
        ('function = "grow"\nafter = "if (!empty(&sk->queue))"\ntext = "a();"', ["\ta();"]),
        ('function = "grow"\nafter = "if (max > 3)"\ntext = "a();"', ["\ta();"]),
        (
            'function = "grow"\nwithin = "if (th->ack)"\nafter = "init(sk);"\ntext = "a();"',
            ["\t\ta();"],
        ),
        (
            'function = ["shrink", "grow"]\nreplace = "READ_ONCE(net->rmem)"\ntext = "most(sk)"',
            ["\tmax = most(sk);"],
        ),
    ],
)
def test_what_is_put_where(text: str, lines: list[str]) -> None:
    assert changed(text) == lines


def test_behind_the_whole_statement() -> None:
    text = 'function = "grow"\nafter = "if (!empty(&sk->queue))"\ntext = "came(sk);"'
    assert "wait(sk);\n\t}\n\tcame(sk);\n\treturn" in put(place(text), SOURCE)[0]


UNUSED = """\
function = "grow"
replace = "READ_ONCE(net->rmem)"
text = "most(sk)"
unused = "struct net *net = sock_net(sk);"
unused_after = "{"
"""


def test_a_declaration_goes_when_nothing_needs_it() -> None:
    assert "struct net" not in put(place(UNUSED), SOURCE)[0]
    used = SOURCE.replace("drain(sk);", "drain(net);")
    assert "struct net *net = sock_net(sk);" in put(place(UNUSED), used)[0]


def test_a_directive_ahead_is_no_statement() -> None:
    source = SOURCE.replace("\treturn max;", "#ifdef CONFIG_X\n\tx();\n#endif\n\treturn max;")
    text = 'function = "grow"\nbefore = "return max;"\ntext = "a();"'
    assert "#endif\n\ta();\n\treturn max;" in put(place(text), source)[0]


TWICE = 'function = "grow"\nafter = "init(sk);"\ntext = "a();"'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TWICE, r"a\.c: it: found 2 times, after `init\(sk\);` in grow\(\), in lines 20, 22"),
        (
            'function = "shrink"\nafter = "init(sk);"\ntext = "a();"',
            r"not found: after `init\(sk\);` in shrink\(\); it is in grow\(\)",
        ),
        (
            'function = "grow"\nafter = "update(sk, max);"\ntext = "a();"',
            r"`update\(sk, max\);` in line 17 is no statement of its own",
        ),
        ('end_of = "struct sock_b"\ntext = "int b;"', r"struct sock_b is there 0 times"),
        (
            'function = "grow"\n[[place.form]]\nafter = "drain(sk);"\ntext = "a();"\n'
            '[[place.form]]\nafter = "wait(sk);"\ntext = "a();"',
            r"it is there after `drain\(sk\);` in grow\(\), and after `wait\(sk\);` in grow\(\)",
        ),
    ],
)
def test_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(PlaceError, match=words):
        put(place(text), SOURCE)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\tdrain(sk);\n", "#ifdef CONFIG_X\n\tdrain(sk);\n#endif\n", "is inside of an #if"),
        ("drain(sk);", "drain(sk); more(sk);", r"goes on behind `drain\(sk\);`"),
        ("int grow_more(void);", "void grow(void)\n{\n}", r"grow\(\) is there 2 times"),
        ("drain(sk);", "drain(sk", "a bracket is not closed|not found"),
        ("drain(sk);", "/* drain(sk); */", "not found"),
        ("drain(sk);", 'log("drain(sk);");', "not found"),
    ],
)
def test_sources_that_are_refused(old: str, new: str, words: str) -> None:
    described = place('function = "grow"\nafter = "drain(sk);"\ntext = "a();"')
    put(described, SOURCE)
    with pytest.raises(PlaceError, match=words):
        put(described, SOURCE.replace(old, new))


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(PlaceError, match=r"a\.c: it: the tree has no such file"):
        put(place(TWICE), None)


MAKEFILE = "obj-y += a.o\nobj-y  +=  b.o \n# obj-y += c.o\n"


def test_lines_of_other_files() -> None:
    assert changed('after = "obj-y += b.o"\ntext = "obj-y += d.o"', MAKEFILE, "Makefile")
    end = place('end_of = ""\ntext = "obj-y += d.o"', "Makefile")
    assert put(end, MAKEFILE)[0].endswith("c.o\nobj-y += d.o\n")
    assert put(end, "obj-y += a.o")[0] == "obj-y += a.o\nobj-y += d.o\n"
    with pytest.raises(PlaceError, match="not found"):
        put(place('after = "obj-y += c.o"\ntext = "d"', "Makefile"), MAKEFILE)
    # The first form that is there counts.
    either = place(
        'after = ["obj-y += x.o", "obj-y += a.o", "obj-y += b.o"]\ntext = "d"', "Makefile"
    )
    assert put(either, MAKEFILE)[1].lines == (1,)


def test_a_tree_is_asked_and_not_its_version() -> None:
    files = {"a.c": SOURCE}
    there = 'after = "init(sk);"\ntext = "a();"\nwhen = '
    for when, answer in (
        ("a.c: int first;", True),
        ("a.c: int second;", False),
        ("!a.c: int second;", True),
        ("b.c: int first;", False),
        ("!b.c: int first;", True),
    ):
        assert wanted(place(f'{there}"{when}"'), files.get) == answer


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('text = "a();"', "a place has one of after, before, replace, end_of"),
        ('after = "a"\nbefore = "b"\ntext = "a();"', "a place has one of"),
        ('after = "a"\ntext = "a();"\nwithn = "b"', "nothing is known as withn"),
    ],
)
def test_descriptions_that_are_wrong(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        place(text)
