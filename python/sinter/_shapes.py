# SPDX-License-Identifier: Apache-2.0
"""Sizes as expressions of named sizes: "2*S+1", "max(N,floordiv(H-1,2))". Shapes of outputs before a run."""
import re

TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][\w.]*)|\"((?:[^\"\\]|\\.)*)\"|(.))")


class Unknown(Exception):
    """The expression holds a size that data decide."""


def broadcast(*sizes):
    return next((s for s in sizes if s != 1), 1)


FUNCTIONS = {"floordiv": lambda a, b: a // b, "ceildiv": lambda a, b: -(-a // b), "mod": lambda a, b: a % b, "min": min,
             "max": max, "broadcast": broadcast}


class Expression:
    """One expression, read by descent; the depth is bounded."""

    def __init__(self, text, symbols):
        self.tokens = [m.groups() for m in TOKEN.finditer(text)]
        self.symbols, self.at, self.depth = symbols, 0, 0

    def peek(self):
        return self.tokens[self.at][3] if self.at < len(self.tokens) else None

    def sum(self):
        self.depth += 1
        if self.depth > 100:
            raise Unknown
        value = self.product()
        while self.peek() in ("+", "-"):
            sign = 1 if self.peek() == "+" else -1
            self.at += 1
            value += sign * self.product()
        self.depth -= 1
        return value

    def product(self):
        value = self.atom()
        while self.peek() == "*":
            self.at += 1
            value *= self.atom()
        return value

    def atom(self):
        if self.at >= len(self.tokens):
            raise Unknown
        number, name, quoted, sign = self.tokens[self.at]
        self.at += 1
        if number is not None:
            return int(number)
        if sign == "-":
            self.depth += 1
            if self.depth > 100:
                raise Unknown
            return -self.atom()
        if sign == "(":
            value = self.sum()
            self.expect(")")
            return value
        if name in FUNCTIONS and self.peek() == "(":
            self.at += 1
            values = [self.sum()]
            while self.peek() == ",":
                self.at += 1
                values.append(self.sum())
            self.expect(")")
            if len(values) < 2 or name in ("floordiv", "ceildiv", "mod") and values[1] == 0:
                raise Unknown
            return FUNCTIONS[name](*values)
        name = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else name
        if name is None or name not in self.symbols:
            raise Unknown
        return self.symbols[name]

    def expect(self, sign):
        if self.peek() != sign:
            raise Unknown
        self.at += 1


def evaluate(text, symbols):
    """The value of an expression, or None where it is not known."""
    found = Expression(text, symbols)
    try:
        value = found.sum()
    except Unknown:
        return None
    return value if found.at == len(found.tokens) else None


def bind(inputs, shapes):
    """name of a size -> value, from the shapes of inputs that are known: {name: shape}."""
    symbols = {}
    for io in inputs:
        for text, size in zip(io.dim_text, shapes.get(io.name, ())):
            if re.fullmatch(r"[A-Za-z_][\w.]*", text):
                symbols.setdefault(text, size)
            elif text.startswith('"') and text.endswith('"'):
                symbols.setdefault(re.sub(r"\\(.)", r"\1", text[1:-1]), size)
    return symbols


def infer(engine, shapes):
    """name -> shape of each output, for shapes of the inputs; -1 where data decide a size."""
    symbols = bind(engine.inputs, shapes)
    made = {}
    for io in engine.outputs:
        sizes = [dim if dim >= 0 else evaluate(text, symbols) for dim, text in zip(io.shape, io.dim_text)]
        made[io.name] = tuple(-1 if s is None else s for s in sizes)
    return made
