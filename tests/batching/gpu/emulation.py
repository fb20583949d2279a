"""PTX on a CPU: the text that the driver of a GPU would get, translated instruction by instruction to LLVM, and run.

Every thread of every block runs, from barrier to barrier: all threads of a block have to arrive at the same one. Each
access to memory has to stay within the arrays that are passed, and only results may be written. What is not known, or not
rounded as IEEE says (approximations, flushed subnormal numbers), is refused. add.rn, mul.rn, fma.rn, div.rn, sqrt.rn have
the same bits on both processors, and so do kernels made of them.
"""

import ctypes
import re
from itertools import count

import llvmlite.binding as llvm
import numpy as np

WIDTHS = {"pred": 1, **{f"{k}{n}": n for n in (8, 16, 32, 64) for k in "bus"}, "f32": 32, "f64": 64}
FLOATS = {"f32": "float", "f64": "double"}
ORDERED = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "num": "ord"}
UNORDERED = {"equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "nan": "uno"}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
ROUNDED = {"rni": "roundeven", "rmi": "floor", "rpi": "ceil", "rzi": "trunc"}
REFUSED = {"approx", "full", "ftz", "rz", "rm", "rp", "sat"}
REGISTERS = {"%tid.x": "tid", "%ctaid.x": "ctaid", "%ntid.x": "ntid", "%nctaid.x": "nctaid"}
STATEMENTS = re.compile(r"[$\w]+:(?!:)|[{}](?=\s*$)|[^;{}\s][^;{}]*(?:\{[^{}]*\}[^;{}]*)*;", re.MULTILINE)
FAULTS = {1: "access outside of the arrays", 2: "write to an array that is only read", 3: "reached a trap"}


class Refused(Exception):
    """An instruction that the emulation does not know, or that is not rounded as IEEE says."""


class Function:
    """A function of PTX as LLVM text. In an entry, registers are in the thread's memory, so that it can go on after a
    barrier; elsewhere on the stack."""

    def __init__(self, name, returned, given, body, entry, symbols):
        self.name, self.returned, self.given, self.entry, self.symbols = name, returned, given, entry, symbols
        self.numbers, self.lines, self.begin = count(), [], []
        self.registers, self.places, self.scopes = {}, {}, [{}]
        self.size, self.resumes, self.line = 0, 0, ""
        for k, (place, size) in enumerate([*returned, *given]):
            self.places[place] = (f"%given{k}", size)
        for statement in STATEMENTS.findall(body):
            self.line = " ".join(statement.split())
            self.statement(self.line)

    # text

    def text(self):
        given = ", ".join(f"ptr %given{k}" for k in range(len(self.returned) + len(self.given)))
        body = "\n".join([*self.begin, "  br label %start" if not self.entry else self.switch(), "start:", *self.lines])
        end = "  unreachable" if body.rstrip().endswith(":") else ""
        if self.entry:
            return f"define i32 @{self.name}(ptr noalias %state, i32 %resume, {given}) nounwind {{\n{body}\n{end}\n}}"
        return f"define internal void @{self.name}({given}) nounwind {{\n{body}\n{end}\n}}"

    def switch(self):
        cases = " ".join(f"i32 {k}, label %resume{k}" for k in range(1, self.resumes + 1))
        return f"  switch i32 %resume, label %start [{cases}]"

    def do(self, line):
        self.lines.append(f"  {line}")

    def add(self, line):
        name = f"%t{next(self.numbers)}"
        self.do(f"{name} = {line}")
        return name

    def label(self, name):
        if self.lines and not self.ended():
            self.do(f"br label %{name}")
        self.lines.append(f"{name}:")

    def ended(self):
        return bool(self.lines) and self.lines[-1].split()[0] in ("br", "ret", "unreachable")

    def room(self):
        """Where a register is: an offset in the thread's memory, or an address."""
        if not self.entry:
            return self.place(8, 8)
        self.size += 8
        return self.size - 8

    def place(self, size, align=16):
        """Memory of the thread: an address that is known at the beginning."""
        name = f"%m{next(self.numbers)}"
        if self.entry:
            self.size = -(-self.size // align) * align
            self.begin.append(f"  {name} = getelementptr i8, ptr %state, i64 {self.size}")
            self.size += size
        else:
            self.begin.append(f"  {name} = alloca [{size} x i8], align {align}")
        return name

    # operands

    def register(self, name):
        """The address of a register."""
        at = self.registers[name][0]
        return self.add(f"getelementptr i8, ptr %state, i64 {at}") if self.entry else at

    def get(self, x, kind):
        """An operand as an integer as wide as its type."""
        x, bits = x.strip(), WIDTHS[kind]
        if x in self.registers:
            own = self.registers[x][1]
            value = self.add(f"load i{own}, ptr {self.register(x)}")
            return value if own == bits else self.add(f"{'trunc' if own > bits else 'zext'} i{own} {value} to i{bits}")
        if x in REGISTERS:
            return self.add(f"load i32, ptr @{REGISTERS[x]}")
        if found := re.fullmatch(r"0[df]([0-9A-Fa-f]+)", x):
            return str(int(found[1], 16))
        if re.fullmatch(r"-?(0x)?[0-9A-Fa-f]+U?", x):
            return str(int(x.rstrip("U"), 0))
        if x in self.places or x in self.symbols:
            return self.add(f"ptrtoint ptr {self.address_of(x)} to i64")
        raise Refused(f"{x} in {self.line}")

    def number(self, x, kind):
        """An operand as a floating-point number."""
        return self.add(f"bitcast i{WIDTHS[kind]} {self.get(x, kind)} to {FLOATS[kind]}")

    def put(self, register, value, bits, signed=False):
        own = self.registers[register.strip()][1]
        if own != bits:
            how = "trunc" if own < bits else "sext" if signed else "zext"
            value = self.add(f"{how} i{bits} {value} to i{own}")
        self.do(f"store i{own} {value}, ptr {self.register(register.strip())}")

    def put_number(self, register, value, kind):
        bits = WIDTHS[kind]
        self.put(register, self.add(f"bitcast {FLOATS[kind]} {value} to i{bits}"), bits)

    def address_of(self, x):
        for scope in reversed(self.scopes):
            if x in scope:
                return scope[x]
        return self.places[x][0] if x in self.places else f"@{x}"

    def address(self, x):
        base, offset = re.fullmatch(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\d+))?\s*\]", x.strip()).groups()
        known = base in self.places or base in self.symbols or any(base in s for s in self.scopes)
        start = self.address_of(base) if known else self.add(f"inttoptr i64 {self.get(base, 'b64')} to ptr")
        return self.add(f"getelementptr i8, ptr {start}, i64 {offset or 0}")

    # statements

    def statement(self, line):
        if line == "{":
            self.scopes.append({})
        elif line == "}":
            self.scopes.pop()
        elif line.endswith(":"):
            self.label(named(line[:-1]))
        elif line.startswith("."):
            self.declared(line)
        elif line != ";":
            if self.ended():
                self.lines.append(f"n{next(self.numbers)}:")
            guard = re.match(r"@(!?)(%\w+)\s+", line)
            words = line[guard.end() if guard else 0 : -1].strip()
            name, _, rest = words.partition(" ")
            self.guarded(guard, name.split("."), rest.strip())

    def declared(self, line):
        if found := re.match(r"\.reg\s+\.(\w+)\s+%(\w+)<(\d+)>;", line):
            kind, name, number = found[1], found[2], int(found[3])
            for k in range(number):
                self.registers[f"%{name}{k}"] = (self.room(), WIDTHS[kind])
        elif found := re.match(r"\.reg\s+\.(\w+)\s+([\w%, ]+);", line):
            for name in found[2].split(","):
                self.registers[name.strip()] = (self.room(), WIDTHS[found[1]])
        elif found := re.match(r"\.param\s+(?:\.align \d+ )?\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?;", line):
            size = int(found[3]) * WIDTHS[found[1]] // 8 if found[3] else WIDTHS[found[1]] // 8
            self.scopes[-1][found[2]] = self.place(max(size, 8))
        elif found := re.match(r"\.local\s+\.align (\d+) \.b8\s+([\w$]+)\[(\d+)\];", line):
            self.places[found[2]] = (self.place(int(found[3])), int(found[3]))
        elif found := re.match(r"\.shared\s+\.align (\d+) \.b8\s+([\w$]+)\[(\d+)\];", line):
            self.symbols[found[2]] = ("shared", int(found[3]))
        elif not line.startswith((".loc", ".pragma", ".file")):
            raise Refused(line)

    def guarded(self, guard, name, rest):
        """A statement, done only if its guard says so."""
        if guard is None:
            self.instruction(name, rest)
            return
        value = self.get(guard[2], "pred")
        if name[0] == "bra":
            after, to = f"n{next(self.numbers)}", named(rest)
        else:
            to, after = f"n{next(self.numbers)}", f"n{next(self.numbers)}"
        first, second = (after, to) if guard[1] else (to, after)
        self.do(f"br i1 {value}, label %{first}, label %{second}")
        if name[0] != "bra":
            self.lines.append(f"{to}:")
            self.instruction(name, rest)
            if not self.ended():
                self.do(f"br label %{after}")
        self.lines.append(f"{after}:")

    def instruction(self, name, rest):
        operation, kind = name[0], name[-1]
        given = [
            x.strip() for x in re.findall(r"\{[^}]*\}|\([^)]*\)|\[[^\]]*\]|[^\s,{(\[][^,{(\[]*", rest) if x.strip()
        ]
        if operation in ("bra", "ret", "exit", "trap", "bar", "barrier", "call"):
            self.control(operation, given)
        elif operation in ("ld", "st"):
            self.memory(operation, name, given, kind)
        elif operation == "mov":
            self.move(given, kind)
        elif operation == "cvta":
            self.put(given[0], self.get(given[1], "b64"), 64)
        elif operation == "cvt":
            self.convert(name, given)
        elif operation == "setp":
            self.compare(name, given, kind)
        elif operation == "selp":
            which = self.get(given[3], "pred")
            bits = WIDTHS[kind]
            a, b = (self.get(x, kind) for x in given[1:3])
            self.put(given[0], self.add(f"select i1 {which}, i{bits} {a}, i{bits} {b}"), bits)
        elif kind in FLOATS:
            self.arithmetic(operation, name, given, kind)
        else:
            self.whole(operation, name, given, kind)

    def control(self, operation, given):
        if operation == "bra":
            self.do(f"br label %{named(given[0])}")
        elif operation in ("ret", "exit"):
            self.do("ret i32 0" if self.entry else "ret void")
        elif operation == "trap":
            self.do(f"call void @fault(i32 3, i32 {self.here()})")
        elif operation == "call":
            names = [x for x in given if not x.startswith("(")]
            given = [y for x in given if x.startswith("(") for y in x.strip("()").split(",")]
            passed = ", ".join(f"ptr {self.address_of(x.strip())}" for x in given if x.strip())
            self.do(f"call void @{names[0]}({passed})")
        else:
            if not self.entry:
                raise Refused(f"a barrier within a function: {self.line}")
            self.resumes += 1
            self.do(f"ret i32 {self.resumes}")
            self.lines.append(f"resume{self.resumes}:")

    def here(self):
        """The number by which a fault says where it was."""
        self.symbols["lines"].append(self.line)
        return len(self.symbols["lines"]) - 1

    def memory(self, operation, name, given, kind):
        bits, space = WIDTHS[kind], next((x for x in name if x in ("global", "shared", "local", "param", "const")), "")
        target, where = (given[0], given[1]) if operation == "ld" else (given[1], given[0])
        parts = [x.strip() for x in target.strip("{}").split(",")] if target.startswith("{") else [target]
        at, size = self.address(where), bits // 8
        if space not in ("param", "local", "const"):
            wide = f"i64 {size * len(parts)}, i32 {int(operation == 'st')}, i32 {int(space == 'shared')}"
            self.do(f"call void @check(ptr {at}, {wide}, i32 {self.here()})")
        for k, x in enumerate(parts):
            one = self.add(f"getelementptr i8, ptr {at}, i64 {k * size}") if k else at
            if operation == "ld":
                value = self.add(f"load i{bits}, ptr {one}, align 1")
                self.put(x, value, bits, signed=kind[0] == "s")
            else:
                self.do(f"store i{bits} {self.get(x, kind)}, ptr {one}, align 1")

    def move(self, given, kind):
        bits = WIDTHS[kind]
        to, x = given
        if to.startswith("{"):
            parts, value = [p.strip() for p in to.strip("{}").split(",")], self.get(x, kind)
            each = bits // len(parts)
            for k, part in enumerate(parts):
                one = self.add(f"lshr i{bits} {value}, {k * each}") if k else value
                if part != "_":
                    self.put(part, self.add(f"trunc i{bits} {one} to i{each}"), each)
        elif x.startswith("{"):
            parts = [p.strip() for p in x.strip("{}").split(",")]
            each, total = bits // len(parts), "0"
            for k, part in enumerate(parts):
                one = self.add(f"zext i{each} {self.get(part, f'b{each}')} to i{bits}")
                total = self.add(f"or i{bits} {total}, {self.add(f'shl i{bits} {one}, {k * each}')}")
            self.put(to, total, bits)
        else:
            self.put(to, self.get(x, kind), bits)

    def convert(self, name, given):
        to, old = name[-2:]
        how = {x for x in name[1:-2]}
        if how & (REFUSED - {"rz", "rm", "rp"}):
            raise Refused(self.line)
        rounding = next((ROUNDED[x] for x in how if x in ROUNDED), "")
        new_bits, bits = WIDTHS[to], WIDTHS[old]
        if old in FLOATS:
            x = self.number(given[1], old)
            if rounding:
                x = self.add(f"call {FLOATS[old]} @llvm.{rounding}.f{bits}({FLOATS[old]} {x})")
            if to in FLOATS:
                if to != old:
                    if to == "f32" and "rn" not in how:
                        raise Refused(self.line)
                    x = self.add(f"{'fpext' if to == 'f64' else 'fptrunc'} {FLOATS[old]} {x} to {FLOATS[to]}")
                return self.put_number(given[0], x, to)
            convert = "fptosi" if to[0] == "s" else "fptoui"
            found = self.add(f"call i{new_bits} @llvm.{convert}.sat.i{new_bits}.f{bits}({FLOATS[old]} {x})")
            return self.put(given[0], found, new_bits, signed=to[0] == "s")
        x = self.get(given[1], old)
        if to in FLOATS:
            if "rn" not in how:
                raise Refused(self.line)
            convert = "sitofp" if old[0] == "s" else "uitofp"
            return self.put_number(given[0], self.add(f"{convert} i{bits} {x} to {FLOATS[to]}"), to)
        if new_bits != bits:
            convert = "trunc" if new_bits < bits else "sext" if old[0] == "s" else "zext"
            x = self.add(f"{convert} i{bits} {x} to i{new_bits}")
        return self.put(given[0], x, new_bits, signed=to[0] == "s")

    def compare(self, name, given, kind):
        predicate = name[1]
        if REFUSED & set(name):
            raise Refused(self.line)
        if kind in FLOATS:
            a, b = (self.number(x, kind) for x in given[1:3])
            found = self.add(f"fcmp {(ORDERED | UNORDERED)[predicate]} {FLOATS[kind]} {a}, {b}")
        else:
            a, b = (self.get(x, kind) for x in given[1:3])
            if predicate in UNSIGNED:
                predicate = f"u{UNSIGNED[predicate]}"
            elif predicate not in ("eq", "ne"):
                predicate = ("s" if kind[0] == "s" else "u") + predicate
            found = self.add(f"icmp {predicate} i{WIDTHS[kind]} {a}, {b}")
        if len(given) > 3:
            joint = next(x for x in name if x in ("and", "or", "xor"))
            found = self.add(f"{joint} i1 {found}, {self.get(given[3].lstrip('!'), 'pred')}")
            if given[3].startswith("!"):
                raise Refused(self.line)
        self.put(given[0], found, 1)

    def arithmetic(self, operation, name, given, kind):
        if REFUSED & set(name):
            raise Refused(self.line)
        t, mark = FLOATS[kind], f"f{WIDTHS[kind]}"
        x = [self.number(y, kind) for y in given[1:]]
        two = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
        if operation in (*two, "fma", "sqrt", "rcp") and "rn" not in name:
            raise Refused(self.line)
        called = {"fma": "fma", "sqrt": "sqrt", "abs": "fabs"}
        if operation in two:
            found = self.add(f"{two[operation]} {t} {x[0]}, {x[1]}")
        elif operation in called:
            found = self.add(f"call {t} @llvm.{called[operation]}.{mark}({', '.join(f'{t} {y}' for y in x)})")
        elif operation == "rcp":
            found = self.add(f"fdiv {t} 1.0, {x[0]}")
        elif operation == "neg":
            found = self.add(f"fneg {t} {x[0]}")
        elif operation == "copysign":
            found = self.add(f"call {t} @llvm.copysign.{mark}({t} {x[1]}, {t} {x[0]})")
        elif operation in ("min", "max"):
            exact = f"{operation}imum{'' if 'NaN' in name else 'num'}"
            found = self.add(f"call {t} @llvm.{exact}.{mark}({t} {x[0]}, {t} {x[1]})")
        else:
            raise Refused(self.line)
        self.put_number(given[0], found, kind)

    def whole(self, operation, name, given, kind):
        bits, signed = WIDTHS[kind], kind[0] == "s"
        t = f"i{bits}"
        if operation in ("and", "or", "xor"):
            found = self.add(f"{operation} {t} {self.get(given[1], kind)}, {self.get(given[2], kind)}")
        elif operation == "not":
            found = self.add(f"xor {t} {self.get(given[1], kind)}, -1")
        elif operation == "neg":
            found = self.add(f"sub {t} 0, {self.get(given[1], kind)}")
        elif operation == "abs":
            found = self.add(f"call {t} @llvm.abs.{t}({t} {self.get(given[1], kind)}, i1 false)")
        elif operation in ("min", "max"):
            a, b = (self.get(x, kind) for x in given[1:3])
            found = self.add(f"call {t} @llvm.{'s' if signed else 'u'}{operation}.{t}({t} {a}, {t} {b})")
        elif operation in ("div", "rem"):
            a, b = (self.get(x, kind) for x in given[1:3])
            found = self.add(f"{'s' if signed else 'u'}{operation} {t} {a}, {b}")
        elif operation in ("shl", "shr"):
            found = self.shifted(operation, given, kind)
        elif operation == "shf":
            by = self.add(f"and i32 {self.get(given[3], 'b32')}, 31")
            if "wrap" not in name:
                raise Refused(self.line)
            low, high = (self.get(x, "b32") for x in given[1:3])
            which = "fshl" if name[1] == "l" else "fshr"
            found = self.add(f"call i32 @llvm.{which}.i32(i32 {high}, i32 {low}, i32 {by})")
        elif operation == "bfe" and not signed and given[2].isdigit() and given[3].isdigit():
            moved = self.add(f"lshr {t} {self.get(given[1], kind)}, {given[2]}")
            found = self.add(f"and {t} {moved}, {(1 << int(given[3])) - 1}")
        elif operation == "prmt" and re.fullmatch(r"(0x)?[0-9A-Fa-f]+U?", given[3]):
            found = self.permuted(given, int(given[3].rstrip("U"), 0))
        elif operation in ("clz", "popc"):
            called, more = ("ctlz", ", i1 false") if operation == "clz" else ("ctpop", "")
            found = self.add(f"call {t} @llvm.{called}.{t}({t} {self.get(given[1], kind)}{more})")
            return self.put(given[0], self.add(f"trunc i64 {found} to i32") if bits == 64 else found, 32)
        elif operation in ("add", "addc", "sub", "subc", "mul", "mad", "madc"):
            return self.sums(operation, name, given, kind)
        else:
            raise Refused(self.line)
        return self.put(given[0], found, bits, signed)

    def permuted(self, given, selector):
        """Four bytes of eight, each chosen by four bits of the selector, of which the highest repeats the sign."""
        low, high = (self.add(f"zext i32 {self.get(x, 'b32')} to i64") for x in given[1:3])
        both = self.add(f"or i64 {low}, {self.add(f'shl i64 {high}, 32')}")
        total = "0"
        for k in range(4):
            which = selector >> (4 * k) & 15
            byte = self.add(f"trunc i64 {self.add(f'lshr i64 {both}, {8 * (which & 7)}')} to i8")
            if which & 8:
                byte = self.add(f"ashr i8 {byte}, 7")
            one = self.add(f"shl i32 {self.add(f'zext i8 {byte} to i32')}, {8 * k}")
            total = self.add(f"or i32 {total}, {one}")
        return total

    def shifted(self, operation, given, kind):
        """Shifts by more than the width give zeros, or the sign."""
        bits = WIDTHS[kind]
        by = self.get(given[2], "b32")
        most = self.add(f"call i32 @llvm.umin.i32(i32 {by}, i32 {bits - 1})")
        far = self.add(f"icmp uge i32 {by}, {bits}")
        if bits != 32:
            most = self.add(f"{'zext' if bits > 32 else 'trunc'} i32 {most} to i{bits}")
        how = "shl" if operation == "shl" else "ashr" if kind[0] == "s" else "lshr"
        found = self.add(f"{how} i{bits} {self.get(given[1], kind)}, {most}")
        return found if how == "ashr" else self.add(f"select i1 {far}, i{bits} 0, i{bits} {found}")

    def sums(self, operation, name, given, kind):
        """Sums and products, with the carry of one to the next."""
        bits, signed = WIDTHS[kind], kind[0] == "s"
        wide = 2 * bits
        if operation in ("mul", "mad", "madc"):
            a, b = (
                self.add(f"{'sext' if signed else 'zext'} i{bits} {self.get(x, kind)} to i{wide}") for x in given[1:3]
            )
            product = self.add(f"mul i{wide} {a}, {b}")
            if "wide" in name:
                if operation == "mad":
                    product = self.add(f"add i{wide} {product}, {self.get(given[3], f'b{wide}')}")
                return self.put(given[0], product, wide, signed)
            if "hi" in name:
                product = self.add(f"lshr i{wide} {product}, {bits}")
            x = self.add(f"trunc i{wide} {product} to i{bits}")
            if operation == "mul":
                return self.put(given[0], x, bits, signed)
            y = self.get(given[3], kind)
        else:
            x, y = (self.get(z, kind) for z in given[1:3])
        a, b = (self.add(f"zext i{bits} {z} to i{wide}") for z in (x, y))
        less = operation in ("sub", "subc")
        total = self.add(f"{'sub' if less else 'add'} i{wide} {a}, {b}")
        if operation.endswith("c"):
            carry = self.add(f"zext i1 {self.add('load i1, ptr @carry')} to i{wide}")
            total = self.add(f"{'sub' if less else 'add'} i{wide} {total}, {carry}")
        if "cc" in name:
            over = self.add(f"lshr i{wide} {total}, {bits}")
            self.do(f"store i1 {self.add(f'icmp ne i{wide} {over}, 0')}, ptr @carry")
        return self.put(given[0], self.add(f"trunc i{wide} {total} to i{bits}"), bits, signed)


def named(label):
    return label.strip().replace("$", "b")


_SUPPORT = """
@tid = global i32 0
@ctaid = global i32 0
@ntid = global i32 0
@nctaid = global i32 0
@carry = internal global i1 false
@fault.kind = global i32 0
@fault.line = global i32 0
@ranges = global ptr null
@ranges.count = global i64 0

define internal void @fault(i32 %kind, i32 %line) noinline nounwind {
  %before = load i32, ptr @fault.kind
  %first = icmp eq i32 %before, 0
  br i1 %first, label %say, label %end
say:
  store i32 %kind, ptr @fault.kind
  store i32 %line, ptr @fault.line
  br label %end
end:
  ret void
}

define internal void @check(ptr %p, i64 %n, i32 %writes, i32 %shared, i32 %line) noinline nounwind {
  %ranges = load ptr, ptr @ranges
  %count = load i64, ptr @ranges.count
  %from = ptrtoint ptr %p to i64
  %to = add i64 %from, %n
  br label %turn
turn:
  %k = phi i64 [0, %0], [%next, %more]
  %at = getelementptr [4 x i64], ptr %ranges, i64 %k
  %some = icmp ult i64 %k, %count
  br i1 %some, label %look, label %bad
look:
  %low = load i64, ptr %at
  %at1 = getelementptr i64, ptr %at, i64 1
  %high = load i64, ptr %at1
  %at2 = getelementptr i64, ptr %at, i64 2
  %may = load i64, ptr %at2
  %at3 = getelementptr i64, ptr %at, i64 3
  %is = load i64, ptr %at3
  %above = icmp uge i64 %from, %low
  %below = icmp ule i64 %to, %high
  %wanted = zext i32 %shared to i64
  %same = icmp eq i64 %is, %wanted
  %in0 = and i1 %above, %below
  %in = and i1 %in0, %same
  br i1 %in, label %inside, label %more
more:
  %next = add i64 %k, 1
  br label %turn
inside:
  %w = zext i32 %writes to i64
  %forbidden = icmp ugt i64 %w, %may
  br i1 %forbidden, label %wrong, label %end
wrong:
  call void @fault(i32 2, i32 %line)
  ret void
bad:
  call void @fault(i32 1, i32 %line)
  ret void
end:
  ret void
}
"""


class Kernel:
    """A kernel of PTX text. Called with arrays, it runs all threads and changes those that may be written."""

    def __init__(self, ptx, name="kernel"):
        self.lines = []
        symbols, texts, called = {"lines": self.lines}, [_SUPPORT], set()
        ptx = re.sub(r"[ \t]*//[^\n]*", "", ptx)
        for found in re.finditer(
            r"\.(global|const)\s+\.align (\d+) \.(\w+)\s+([\w$]+)\[(\d+)\](?:\s*=\s*\{([^}]*)\})?;", ptx
        ):
            kind, number = WIDTHS[found[3]], int(found[5])
            given = [int(x, 0) for x in (found[6] or "").split(",") if x.strip()]
            listed = ", ".join(f"i{kind} {x}" for x in given + [0] * (number - len(given)))
            texts.append(f"@{found[4]} = global [{number} x i{kind}] [{listed}], align {found[2]}")
            symbols[found[4]] = ("global", number * kind // 8)
        for found in re.finditer(r"\.shared\s+\.align (\d+) \.b8\s+([\w$]+)\[(\d+)\];", ptx):
            texts.append(f"@{found[2]} = global [{found[3]} x i8] zeroinitializer, align 64")
            symbols[found[2]] = ("shared", int(found[3]))
        for found in re.finditer(
            r"^(?:\.(?:visible|weak) )?\.(entry|func)\s*([^{;]*?)\n\{\n(.*?)^\}", ptx, re.M | re.S
        ):
            lists = [parameters(x) for x in re.findall(r"\(([^()]*)\)", found[2])]
            returned = found[1] == "func" and found[2].lstrip().startswith("(")
            own = re.sub(r"^\s*\([^()]*\)", "", found[2]) if returned else found[2]
            own = re.match(r"\s*([\w$]+)", own)[1]
            f = Function(own, lists[0] if returned else [], lists[-1] if len(lists) > returned else [], found[3],
                         found[1] == "entry", symbols)  # fmt: skip
            texts.append(f.text())
            if own == name:
                self.entry = f
            called.add(own)
        for found in re.finditer(r"\.extern \.func\s+\(([^()]*)\)\s+__nv_(\w+)\s+\(([^()]*)\)", ptx):
            texts.append(by_library(found[2], len(parameters(found[3]))))
        whole = "\n".join(texts)
        intrinsics = {x[1]: x for x in re.findall(r"call (\w+) @(llvm\.[\w.]+)\(([^)]*)\)", whole)}
        for result, full, given in intrinsics.values():
            whole += f"\ndeclare {result} @{full}({', '.join(x.split()[0] for x in given.split(', '))})"
        self.text, self.symbols = whole, symbols
        self._compile(name)

    def _compile(self, name):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        machine = target.create_target_machine(cpu=cpu, features=features, opt=0, jit=True)
        for x in (ctypes.CDLL(None),):
            for symbol in re.findall(r"^declare \w+ @(\w+)\(", self.text, re.M):
                if not symbol.startswith("llvm"):
                    llvm.add_symbol(symbol, ctypes.cast(getattr(x, symbol), ctypes.c_void_p).value)
        module = llvm.parse_assembly(self.text)
        module.verify()
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        pointers = [ctypes.c_void_p] * len(self.entry.given)
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, *pointers)
        self.run = kind(self.engine.get_function_address(name))

    def _global(self, name, kind):
        return kind.from_address(self.engine.get_global_value_address(name))

    def __call__(self, given, results, grid, block):
        """given: arrays that are read; results: arrays that are written. Raises AssertionError where a thread strays."""
        arrays = [*map(padded, given), *results]
        assert len(arrays) == len(self.entry.given) and all(x.flags.c_contiguous for x in arrays)
        ranges = [(x.ctypes.data, x.ctypes.data + x.nbytes, int(k >= len(given)), 0) for k, x in enumerate(arrays)]
        shared = []
        for name, found in self.symbols.items():
            if name != "lines":
                at = self.engine.get_global_value_address(name)
                ranges.append((at, at + found[1], int(found[0] == "shared"), int(found[0] == "shared")))
                shared += [(at, found[1])] * (found[0] == "shared")
        table = np.array(ranges, np.uint64)
        self._global("ranges", ctypes.c_void_p).value = table.ctypes.data
        self._global("ranges.count", ctypes.c_int64).value = len(ranges)
        self._global("ntid", ctypes.c_int32).value, self._global("nctaid", ctypes.c_int32).value = block, grid
        tid, kind = self._global("tid", ctypes.c_int32), self._global("fault.kind", ctypes.c_int32)
        kind.value = 0
        held = np.empty((block, -(-max(self.entry.size, 16) // 16) * 16), np.uint8)
        # for each thread, what it has to be passed: pointers to pointers, as parameters are in memory
        values = np.array([x.ctypes.data for x in arrays], np.uint64)
        passed = [values.ctypes.data + 8 * k for k in range(len(arrays))]
        for number in range(grid):
            self._global("ctaid", ctypes.c_int32).value = number
            held[:] = 0xA5
            for at, size in shared:
                ctypes.memset(at, 0xFF, size)
            at_barrier = 0
            while True:
                arrived = set()
                for k in range(block):
                    tid.value = k
                    arrived.add(self.run(held[k].ctypes.data, at_barrier, *passed))
                if kind.value:
                    line = self.lines[self._global("fault.line", ctypes.c_int32).value]
                    raise AssertionError(f"{FAULTS[kind.value]}: {line}")
                assert len(arrived) == 1, f"the threads of a block are at different barriers: {arrived}"
                (at_barrier,) = arrived
                if not at_barrier:
                    break


def padded(x):
    """The bytes of an array, up to the next multiple of the alignment that kernels rely on: LLVM reads these at once."""
    whole = np.full(-(-x.nbytes // 16) * 16, 0xFF, np.uint8)
    whole[: x.nbytes] = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    return whole


PARAMETER = re.compile(
    r"\.param\s+(?:\.align \d+ )?\.(\w+)\s+(?:\.ptr\s+)?(?:\.(?:global|shared|local|const)\s+)?"
    r"(?:\.align \d+\s+)?([\w$]+)(?:\[(\d+)\])?"
)


def parameters(text):
    """[(name, bytes)] of a list of parameters."""
    return [(name, WIDTHS[kind] // 8 * int(number or 1)) for kind, name, number in PARAMETER.findall(text)]


def by_library(name, operands):
    """A function of libdevice, by the C library's function of that name."""
    e, own = ("float", name) if name.endswith("f") and name not in ("erf",) else ("double", name)
    passed = ", ".join(f"ptr %a{k}" for k in range(operands))
    loads = "\n".join(f"  %x{k} = load {e}, ptr %a{k}" for k in range(operands))
    values = ", ".join(f"{e} %x{k}" for k in range(operands))
    return f"""
declare {e} @{own}({", ".join([e] * operands)})
define internal void @__nv_{name}(ptr %r, {passed}) nounwind {{
{loads}
  %y = call {e} @{own}({values})
  store {e} %y, ptr %r
  ret void
}}"""
