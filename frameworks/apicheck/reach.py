# SPDX-License-Identifier: Apache-2.0
"""What a program refers to, and behind which checks of the platform's level it is reached."""

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from .classfile import (
    GETSTATIC,
    GOTO,
    GOTO_W,
    IF_ICMPGE,
    IF_ICMPGT,
    IF_ICMPLE,
    IF_ICMPLT,
    IFEQ,
    IFNE,
    INVOKEDYNAMIC,
    INVOKEINTERFACE,
    INVOKESTATIC,
    INVOKEVIRTUAL,
    LDC,
    LDC_W,
    LOOKUPSWITCH,
    RETURNS,
    TABLESWITCH,
    WITH_CLASS,
    Class,
    Instruction,
    Member,
    Method,
)

SDK_INT = ("android/os/Build$VERSION", "SDK_INT", "I")
SDK_LEVEL = "com/android/modules/utils/build/SdkLevel"
# What SdkLevel's methods are named after.
LEVELS = {"R": 30, "S": 31, "Sv2": 32, "T": 33, "U": 34, "V": 35, "B": 36}


@dataclass(frozen=True)
class Use:
    """What an instruction refers to, where SDK_INT is known to be `level` or more."""

    level: int
    member: Member


class Program:
    """The classes of one host, and what SDK_INT has to be for each method."""

    def __init__(self, classes: Iterable[Class]) -> None:
        self.classes = {one.name: one for one in classes}
        self.methods = {
            (method.owner, method.name, method.descriptor): method
            for one in self.classes.values()
            for method in one.methods
        }
        self.children: dict[str, list[str]] = {}
        for one in self.classes.values():
            for parent in one.parents:
                self.children.setdefault(parent, []).append(one.name)
        self.tests: dict[Member, tuple[int, bool]] = {}
        for member, method in self.methods.items():
            if test := self.test_of(method):
                self.tests[member] = test
        self.uses = {member: self.uses_of(method) for member, method in self.methods.items()}

    def compared(self, method: Method, ats: list[int], i: int) -> tuple[int, bool] | None:
        """The level that a branch tests, and whether it jumps where SDK_INT is that or more."""
        branch = method.code[ats[i]]
        owner = self.classes[method.owner]
        if IF_ICMPLT <= branch.opcode <= IF_ICMPLE and i >= 2:
            sdk_int, number = method.code[ats[i - 2]], method.code[ats[i - 1]]
            if sdk_int.opcode != GETSTATIC or owner.constants[sdk_int.index] != SDK_INT:
                return None
            level = pushed(number)
            if level is None:
                return None
            # if_icmpgt jumps from the next level on, if_icmple up to this one
            above = branch.opcode in (IF_ICMPGT, IF_ICMPLE)
            return level + above, branch.opcode in (IF_ICMPGE, IF_ICMPGT)
        if branch.opcode in (IFEQ, IFNE) and i >= 1:
            call = method.code[ats[i - 1]]
            if not INVOKEVIRTUAL <= call.opcode <= INVOKESTATIC:
                return None
            called = owner.constants[call.index]
            is_newer = re.fullmatch(r"isAtLeast(\w+)", called[1])
            if called[0] == SDK_LEVEL and is_newer and is_newer[1] in LEVELS:
                return LEVELS[is_newer[1]], branch.opcode == IFNE
            if test := self.tests.get(called):
                level, true_from = test
                return level, (branch.opcode == IFNE) == true_from
        return None

    def test_of(self, method: Method) -> tuple[int, bool] | None:
        """Of a method that is one comparison: its level, and whether it is true from there on."""
        ats = sorted(method.code)
        opcodes = [method.code[at].opcode for at in ats]
        # getstatic, a number, if_icmp.., iconst_1, goto, iconst_0, ireturn
        if len(ats) != 7 or opcodes[3:] != [4, GOTO, 3, 172]:
            return None
        compared = self.compared(method, ats, 2)
        return None if compared is None else (compared[0], not compared[1])

    def uses_of(self, method: Method) -> list[Use]:
        """What it refers to, each where it is reached with the least known level."""
        levels = self.levels_of(method)
        owner = self.classes[method.owner]
        found = []
        for at, level in levels.items():
            for member in referred(owner, method.code[at]):
                found.append(Use(level, member))
        # A method is verified, and its handlers' classes loaded, before it runs
        found += [Use(0, (caught, "", "")) for *_, caught in method.handlers if caught]
        return found

    def levels_of(self, method: Method) -> dict[int, int]:
        """By instruction that can be reached: what SDK_INT is at least there; 0 if not known."""
        ats = sorted(method.code)
        place = {at: i for i, at in enumerate(ats)}
        jumped_to = {target for one in method.code.values() for target in one.targets}
        levels: dict[int, int] = {}
        waiting = [(ats[0], 0)] if ats else []
        while waiting:
            at, level = waiting.pop()
            if at in levels and levels[at] <= level:
                continue
            level = levels[at] = min(level, levels.get(at, level))
            one = method.code[at]
            # Where others jump between a comparison and its branch, it says nothing
            test = None if at in jumped_to else self.compared(method, ats, place[at])
            jumped = passed = level
            if test and test[1]:
                jumped = max(level, test[0])
            elif test:
                passed = max(level, test[0])
            waiting += [(target, jumped) for target in one.targets]
            if one.opcode not in RETURNS and one.opcode not in (
                GOTO,
                GOTO_W,
                TABLESWITCH,
                LOOKUPSWITCH,
            ):
                waiting.append((one.following, passed))
            waiting += [
                (handler, level) for start, end, handler, _ in method.handlers if start <= at < end
            ]
        return levels

    def called(self, member: Member) -> list[Member]:
        """The methods of this program that a call may come to, or that make a lambda."""
        owner, name, descriptor = member
        found = []
        seen = set()
        waiting = [owner]
        while waiting:  # overriding ones
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            if (one, name, descriptor) in self.methods:
                found.append((one, name, descriptor))
            waiting += self.children.get(one, [])
        waiting = self.classes[owner].parents[:] if owner in self.classes else []
        while waiting:  # inherited ones
            one = waiting.pop()
            if (one, name, descriptor) in self.methods:
                found.append((one, name, descriptor))
            elif one in self.classes:
                waiting += self.classes[one].parents
        return found


def pushed(one: Instruction) -> int | None:
    """The number that an instruction pushes; javac puts constants of other classes in here."""
    if 2 <= one.opcode <= 8:
        return one.opcode - 3
    if one.opcode == 16:
        return int(struct.unpack(">b", one.operand)[0])
    if one.opcode == 17:
        return int(struct.unpack(">h", one.operand)[0])
    return None


def referred(owner: Class, one: Instruction) -> list[Member]:
    """The members and classes that an instruction refers to."""
    if GETSTATIC <= one.opcode <= INVOKEINTERFACE or one.opcode in WITH_CLASS:
        return [owner.constants[one.index]]
    if one.opcode in (LDC, LDC_W):
        return [owner.constants[one.index]] if one.index in owner.constants else []
    return owner.dynamics[one.index] if one.opcode == INVOKEDYNAMIC else []
