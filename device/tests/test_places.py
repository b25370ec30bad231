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


def test_a_directive_ahead_of_a_body_is_none_of_its_head() -> None:
    locks = "(struct sock *sk)\n#ifdef CONFIG_X\n\t__releases(&sk->lock.slock)\n#endif\n{"
    source = SOURCE.replace("(struct sock *sk)\n{", locks)
    text = 'function = "grow"\nbefore = "return max;"\ntext = "a();"'
    assert source != SOURCE
    assert changed(text, source) == ["\ta();"]


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


UNEVEN = "ends elsewhere by the branch of an #if"
BLOCK = """\
	if (th->ack) {
#ifdef CONFIG_X
		if (x) {
#else
		if (y) {
#endif
			init(sk);
		}
	}
"""
IN_STRUCT = """\
	int first;
#ifdef CONFIG_X
	struct sock_b {
		int b;
}
	mine;
#endif
"""


@pytest.mark.parametrize(
    ("text", "old", "new", "words"),
    [
        # A bracket in each branch, of which the source has one.
        (
            'function = "grow"\nafter = "if (th->ack)"\ntext = "a();"',
            "\tif (th->ack) {\n\t\tinit(sk);\n\t}\n",
            BLOCK,
            UNEVEN,
        ),
        (
            'function = "grow"\nwithin = "if (th->ack)"\nafter = "init(sk);"\ntext = "a();"',
            "\tif (th->ack) {\n\t\tinit(sk);\n\t}\n",
            BLOCK,
            UNEVEN,
        ),
        # An end in each branch
        (
            'function = "grow"\nafter = "if (max > 3)"\ntext = "a();"',
            "\t\tupdate(sk,\n\t\t\tmax);\n",
            "#ifdef CONFIG_X\n\t\tupdate(sk, max);\n#else\n\t\tupdate(sk);\n#endif\n",
            UNEVEN,
        ),
        (
            'function = "grow"\nafter = "update("\ntext = "a();"',
            "\tif (max > 3)\n\t\tupdate(sk,\n\t\t\tmax);\n",
            "\tupdate(sk,\n#ifdef CONFIG_X\n\t\tmax);\n#else\n\t\t3);\n#endif\n",
            UNEVEN,
        ),
        # A function that is compiled sometimes
        *(
            (
                f'{text}\ntext = "a();"',
                SOURCE[SOURCE.index("static int grow") : SOURCE.index("int grow_more")],
                "#ifndef CONFIG_X\nstatic int grow(struct sock *sk)\n{\n\ta(1);\n}\n#endif\n",
                "is inside of an #if",
            )
            for text in (
                'function = "grow"\nafter = "a(1);"',
                'function = "grow"\nend_of = ""',
                'after_function = "grow"',
            )
        ),
        ('end_of = "struct sock_a"\ntext = "int last;"', "\tint first;\n", IN_STRUCT, "OK"),
        (
            'end_of = "struct sock_a"\ntext = "int last;"',
            "};\n",
            "#ifdef CONFIG_X\n\tint x; };\n#else\n};\n#endif\n",
            f"no end in column 0|{UNEVEN}",
        ),
        (
            'end_of = "struct sock_a"\ntext = "int last;"',
            "struct sock_a {\n\tint first;\n};\n",
            "#ifdef CONFIG_X\nstruct sock_a {\n\tint first;\n};\n#endif\n",
            "is inside of an #if",
        ),
    ],
)
def test_what_is_compiled_sometimes_is_no_place(text: str, old: str, new: str, words: str) -> None:
    described = place(text)
    assert SOURCE.count(old) >= 1
    source = SOURCE.replace(old, new, 1)
    if words == "OK":
        assert "#endif\n\tint last;\n};\n" in put(described, source)[0]
        return
    with pytest.raises(PlaceError, match=words):
        put(described, source)


def test_branches_of_their_own_are_no_hindrance() -> None:
    source = SOURCE.replace(
        "\t\tdrain(sk);\n",
        "#if defined(CONFIG_X)\n\t\tif (x) {\n\t\t\tx();\n\t\t}\n#elif Y\n\t\ty();\n#endif\n",
    )
    text = 'function = "grow"\nafter = "if (!empty(&sk->queue))"\ntext = "came(sk);"'
    assert "wait(sk);\n\t}\n\tcame(sk);\n\treturn" in put(place(text), source)[0]


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


@pytest.mark.parametrize(
    "text",
    ['after = "obj-y := a.o"\ntext = "obj-m := b.o"', 'replace = "obj-y := a.o"\ntext = "c"'],
)
def test_a_line_that_is_there_twice(text: str) -> None:
    """Both are put, and both are taken."""
    makefile = "obj-y := a.o\nobj-y := a.o\n"
    assert len(changed(f"{text}\ntimes = 2", makefile, "Makefile")) == 2


def test_a_tree_is_asked_and_not_its_version() -> None:
    files = {"a.c": SOURCE}
    there = 'after = "init(sk);"\ntext = "a();"\nwhen = '
    for when, answer in (
        ("a.c: int first;", True),
        ("a.c: int second;", False),
        ("!a.c: int second;", True),
        ("b.c: int first;", False),
        ("!b.c: int first;", True),
        # All of several
        ('!b.c: int first;", "a.c: int first;', True),
        ('!b.c: int first;", "a.c: int second;', False),
        ('a.c: int second;", "!b.c: int first;', False),
    ):
        conditions = f'["{when}"]' if ", " in when else f'"{when}"'
        assert wanted(place(f"{there}{conditions}"), files.get) == answer


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


JAVA = """\
package a;

import a.Manager.Update;

/** Not service(). */
class Service {
    private final Manager mManager; // "}"

    Service(Context context) {
        this(context, new Manager());
    }

    Service(Context context, Manager manager) throws A, b.C {
        mManager = manager;
        mRate = Settings.rate(
                context);
    }

    @Override
    public void start() {
        post(() -> {
            ready();
        });

        // What follows is for later ones.
        if (mDeps.isAtLeastT()) {
            ready();
        }
        switch (word) {
            default:
                return other(word);
        }
    }

    private boolean ready() {
        return new Task() {
            void run() {
                ready();
            }
        }.start();
    }
}
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('after = "import a.Manager.Update;"\ntext = "import a.Z;"', ["import a.Z;"]),
        # Whatever the line breaks, and in the one of both constructors that has it.
        (
            'function = "Service"\nafter = "mRate = Settings.rate(context);"\ntext = "a();"',
            ["        a();"],
        ),
        (
            'function = "start"\nbefore = "if (mDeps.isAtLeastT()) {"\ntext = "a();\\n\\n"',
            ["        a();"],
        ),
        (
            'function = "start"\nbefore = "default: return other(word);"\ntext = "case:\\n    b;"',
            ["            case:", "                b;"],
        ),
        ('function = "start"\nend_of = ""\ntext = "a();"', ["        a();"]),
        (
            'after_function = "start"\ntext = "\\n/** Ours. */\\nvoid ours() {\\n    a();\\n}"',
            ["    /** Ours. */", "    void ours() {", "        a();"],
        ),
        (
            'function = "ready"\nreplace = "new Task()"\ntext = "new Other()"',
            ["        return new Other() {"],
        ),
    ],
)
def test_places_in_java(text: str, lines: list[str]) -> None:
    found = changed(text, JAVA, "A.java")
    assert [line for line in found if line.strip()] == lines


def test_comments_above_a_statement_belong_to_it() -> None:
    described = place(
        'function = "start"\nbefore = "if (mDeps.isAtLeastT())"\ntext = "a();"', "A.java"
    )
    after, _ = put(described, JAVA)
    assert "        a();\n        // What follows is for later ones.\n        if (" in after


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('function = "stop"\nend_of = ""\ntext = "a();"', "not found: at the end of stop()"),
        ('function = "Service"\nend_of = ""\ntext = "a();"', "found 2 times, at the end of Serv"),
        ('after_function = "mManager"\ntext = "a();"', "not found: after mManager()"),
        (
            'function = "start"\nafter = "mManager = manager;"\ntext = "a();"',
            "not found: after `mManager = manager;` in start(); it is in Service()",
        ),
        (
            'function = "start"\nafter = "ready();"\ntext = "a();"',
            "found 2 times, after `ready();`",
        ),
        # A place in a comment or a string is none.
        ('after_function = "service"\ntext = "a();"', "not found: after service()"),
        (
            'function = "ready"\nafter = "mManager = manager;"\ntext = "a();"',
            "it is in Service()",
        ),
    ],
)
def test_refused_in_java(text: str, words: str) -> None:
    with pytest.raises(PlaceError) as error:
        put(place(text, "A.java"), JAVA)
    assert str(error.value).startswith("A.java: it: ")
    assert words in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        'function = "start"\nbefore = "if (mDeps.isAtLeastT())"\ntext = "a();"',
        'function = "Service"\nafter = "mManager = manager;"\ntext = "a();"',
        'after_function = "start"\ntext = "\\nvoid ours();"',
        'after = "import a.Manager.Update;"\ntext = "import a.Z;"',
    ],
)
def test_what_is_there_already_is_refused(text: str) -> None:
    described = place(text, "A.java")
    once, _ = put(described, JAVA)
    with pytest.raises(PlaceError, match="is there already"):
        put(described, once)


def test_taken_back_only_where_it_was_put() -> None:
    """The same line elsewhere is not ours; twice in the function, nobody can tell."""
    described = place('function = "start"\nend_of = ""\ntext = "ready();"', "A.java")
    assert take(described, JAVA) is None
    described = place(
        'function = "Service"\nafter = "mManager = manager;"\ntext = "go();"', "A.java"
    )
    after, _ = put(described, JAVA)
    elsewhere = after.replace("            ready();\n        });", "            go();\n        });")
    assert take(described, elsewhere) == elsewhere.replace(
        "        mManager = manager;\n        go();\n", "        mManager = manager;\n"
    )


CPP = """\
#include "Controllers.h"

namespace {
std::tuple<int, int> parts(int which) { return {which, 0}; }
}  // namespace

void Controllers::init() {
    start();
}

int Other::init() const noexcept {
    return 0;
}
"""


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ('function = "Controllers::init"\nend_of = ""\ntext = "a();"', "    start();\n"),
        ('after_function = "Other::init"\ntext = "int b;"', "    return 0;\n}\n"),
        ('after_function = "parts"\ntext = "int b;"', "return {which, 0}; }\n"),
    ],
)
def test_places_in_cpp(text: str, before: str) -> None:
    described = place(text, "A.cpp")
    after, _ = put(described, CPP)
    assert before + described.forms[0].text in after.replace("    a();", "a();")
    assert take(described, after) == CPP


def test_blueprint_and_lines() -> None:
    blueprint = 'cc_library {\n    aidl: {\n        export: true, // "x"\n    },\n}\n'
    described = place("before = 'aidl: { export: true'\ntext = 'libs: [\"a\"],'", "Android.bp")
    assert put(described, blueprint)[0].startswith('cc_library {\n    libs: ["a"],\n    aidl: {')
    kotlin = "val a = 1\nval b = 2\n"
    text = """
[[place.form]]
after = "val c = 3"
text = "val d = 4"
[[place.form]]
before = "val b = 2"
text = "val d = 4"
"""
    after, _ = put(place(text, "A.kt"), kotlin)
    assert after == "val a = 1\nval d = 4\nval b = 2\n"
