# SPDX-License-Identifier: Apache-2.0
"""Class files, as chapter 4 of the Java Virtual Machine Specification has them."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

Member = tuple[str, str, str]  # class, name, descriptor; a class alone has no name


class CheckError(Exception):
    """The check cannot be made."""


UTF8, CLASS, METHOD_HANDLE, NAME_AND_TYPE, INVOKE_DYNAMIC = 1, 7, 15, 12, 18
MEMBERS = (9, 10, 11)

LENGTHS = {
    **dict.fromkeys([16, 18, *range(21, 26), *range(54, 59), 169, 188], 2),
    **dict.fromkeys([17, 19, 20, 132, *range(153, 169), *range(178, 185), 187, 189], 3),
    **dict.fromkeys([192, 193, 198, 199], 3),
    197: 4,
    **dict.fromkeys([185, 186, 200, 201], 5),
}
LDC, LDC_W = 18, 19
GETSTATIC, PUTFIELD = 178, 181
INVOKEVIRTUAL, INVOKESTATIC, INVOKEINTERFACE, INVOKEDYNAMIC = 182, 184, 185, 186
WITH_CLASS = {187, 189, 192, 193, 197}
IFEQ, IFNE = 153, 154
IF_ICMPLT, IF_ICMPGE, IF_ICMPGT, IF_ICMPLE = 161, 162, 163, 164
GOTO, GOTO_W, TABLESWITCH, LOOKUPSWITCH, WIDE, IINC = 167, 200, 170, 171, 196, 132
RETURNS = {*range(172, 178), 191}  # athrow, too


@dataclass
class Instruction:
    opcode: int
    operand: bytes
    following: int
    targets: list[int] = field(default_factory=list)

    @property
    def index(self) -> int:
        """Of the constant that it refers to."""
        return self.operand[0] if self.opcode == LDC else struct.unpack(">H", self.operand[:2])[0]


@dataclass
class Method:
    owner: str
    name: str
    descriptor: str
    public: bool
    code: dict[int, Instruction]
    # start and end of what is guarded, the handler, the class that is caught
    handlers: list[tuple[int, int, int, str]]

    def __str__(self) -> str:
        return f"{dotted(self.owner)}.{self.name}()"


@dataclass
class Class:
    name: str
    parents: list[str]
    public: bool
    constants: dict[int, Member]
    # by index of an invokedynamic: what it makes lambdas of
    dynamics: dict[int, list[Member]]
    methods: list[Method]
    # of its fields and methods, and of what it refers to
    descriptors: list[str]


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self.data, self.at)
        self.at += struct.calcsize(f">{form}")
        return int(value)

    def bytes(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]


class Pool:
    """The constants of a class."""

    def __init__(self, reader: Reader) -> None:
        self.tags: dict[int, int] = {}
        self.texts: dict[int, str] = {}
        # What a constant is made of: other ones, or a number and another one
        self.parts: dict[int, tuple[int, int]] = {}
        count = reader.take("H")
        index = 1
        while index < count:
            tag = self.tags[index] = reader.take("B")
            if tag == UTF8:
                self.texts[index] = reader.bytes(reader.take("H")).decode(errors="replace")
            elif tag in (3, 4):
                reader.bytes(4)
            elif tag in (5, 6):
                reader.bytes(8)
                index += 1
            elif tag in (CLASS, 8, 16, 19, 20):
                self.parts[index] = (reader.take("H"), 0)
            elif tag == METHOD_HANDLE:
                self.parts[index] = (reader.take("B"), reader.take("H"))
            else:
                self.parts[index] = (reader.take("H"), reader.take("H"))
            index += 1

    def name(self, index: int) -> str:
        """Of a class."""
        return self.texts[self.parts[index][0]]

    def member(self, index: int) -> Member:
        if self.tags[index] == CLASS:
            return (self.name(index), "", "")
        owner, name_and_type = self.parts[index]
        name, descriptor = self.parts[name_and_type]
        return (self.name(owner), self.texts[name], self.texts[descriptor])


def read_class(data: bytes) -> Class:
    reader = Reader(data)
    if reader.take("I") != 0xCAFEBABE:
        raise CheckError("not a class file")
    reader.take("I")
    pool = Pool(reader)
    text = pool.texts
    access = reader.take("H")
    name = pool.name(reader.take("H"))
    parents = [reader.take("H")]
    parents += [reader.take("H") for _ in range(reader.take("H"))]
    descriptors: list[str] = []
    methods: list[Method] = []

    def attributes() -> Iterator[tuple[str, Reader]]:
        for _ in range(reader.take("H")):
            title = text[reader.take("H")]
            yield title, Reader(reader.bytes(reader.take("I")))

    for _ in range(reader.take("H")):
        reader.take("I")
        descriptors.append(text[reader.take("H")])
        list(attributes())
    for _ in range(reader.take("H")):
        flags = reader.take("H")
        method = Method(name, text[reader.take("H")], text[reader.take("H")], False, {}, [])
        method.public = bool(flags & 0x5)  # a subclass of others may call what is protected, too
        descriptors.append(method.descriptor)
        for title, body in attributes():
            if title != "Code":
                continue
            body.take("I")
            method.code = read_code(body.bytes(body.take("I")))
            for _ in range(body.take("H")):
                start, end, handler, caught = (body.take("H") for _ in range(4))
                what = pool.name(caught) if caught else ""
                method.handlers.append((start, end, handler, what))
        methods.append(method)
    lambdas: list[list[Member]] = []
    for title, body in attributes():
        if title != "BootstrapMethods":
            continue
        for _ in range(body.take("H")):
            body.take("H")
            arguments = [body.take("H") for _ in range(body.take("H"))]
            handles = [index for index in arguments if pool.tags[index] == METHOD_HANDLE]
            lambdas.append([pool.member(pool.parts[index][1]) for index in handles])
    constants = {
        index: pool.member(index) for index, tag in pool.tags.items() if tag in (CLASS, *MEMBERS)
    }
    dynamics = {i: pool.parts[i][0] for i, tag in pool.tags.items() if tag == INVOKE_DYNAMIC}
    referred = [text[pool.parts[i][1]] for i, tag in pool.tags.items() if tag == NAME_AND_TYPE]
    return Class(
        name=name,
        parents=[pool.name(parent) for parent in parents if parent],
        public=bool(access & 1),
        constants=constants,
        dynamics={index: lambdas[number] for index, number in dynamics.items()},
        methods=methods,
        descriptors=[*descriptors, *referred],
    )


def read_code(code: bytes) -> dict[int, Instruction]:
    found = {}
    at = 0
    while at < len(code):
        opcode = code[at]
        length = LENGTHS.get(opcode, 1)
        targets: list[int] = []
        if opcode == WIDE:
            length = 6 if code[at + 1] == IINC else 4
        elif opcode in (TABLESWITCH, LOOKUPSWITCH):
            start = at + 4 - at % 4
            default, low, high = struct.unpack_from(">iii", code, start)
            if opcode == TABLESWITCH:
                count, first, step = high - low + 1, start + 12, 4
            else:
                count, first, step = low, start + 12, 8
            jumps = [struct.unpack_from(">i", code, first + step * i)[0] for i in range(count)]
            targets = [at + jump for jump in (default, *jumps)]
            length = first + step * count - at - (4 if opcode == LOOKUPSWITCH else 0)
        elif opcode == GOTO_W:
            targets = [at + struct.unpack_from(">i", code, at + 1)[0]]
        elif 153 <= opcode <= 168 or opcode in (198, 199):
            targets = [at + struct.unpack_from(">h", code, at + 1)[0]]
        found[at] = Instruction(opcode, code[at + 1 : at + length], at + length, targets)
        at += length
    return found


def classes_in(descriptor: str) -> list[str]:
    return re.findall(r"L([^;]+);", descriptor)


def element(name: str) -> str:
    """The class of an array's elements, "" if it has none."""
    if not name.startswith("["):
        return name
    return name.lstrip("[")[1:-1] if name.endswith(";") else ""


def dotted(name: str) -> str:
    return name.replace("/", ".").replace("$", ".")


def spelled(member: Member) -> str:
    owner, name, descriptor = member
    if not name:
        return dotted(owner)
    called = dotted(owner).rpartition(".")[2] if name == "<init>" else name
    arguments = ""
    if descriptor.startswith("("):
        types = re.findall(r"\[*(?:L[^;]+;|[A-Z])", descriptor[1 : descriptor.index(")")])
        short = {"Z": "boolean", "I": "int", "J": "long", "S": "short", "B": "byte", "C": "char"}
        short |= {"F": "float", "D": "double"}
        named = [
            dotted(element(one) if "L" in one else short[one.lstrip("[")]).rpartition(".")[2]
            + "[]" * one.count("[")
            if one.startswith("[")
            else dotted(one[1:-1]).rpartition(".")[2]
            if one.startswith("L")
            else short[one]
            for one in types
        ]
        arguments = f"({', '.join(named)})"
    return f"{dotted(owner)}.{called}{arguments}"
