"""Tables of a file, generated from the declared fields of classes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, create_model

from jaxmbs.io.tables import IN_FILE, Table, numbers_in_file, stated
from jaxmbs.model.compounds import Compound, Placing
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Declared, declared, type_name

Classes = tuple[type, ...]


class Made(Table):
    """A table with the fields of a class, and possibly further keys of a file."""

    makes: ClassVar[type]

    def build(self) -> Any:
        """The object that the table describes."""
        return self.made(type(self).makes)

    def made(self, cls: type) -> Any:
        """An object of a class whose fields are all in the table."""
        return cls(**{d.name: _built(getattr(self, d.key)) for d in declared(cls) if d.kind is not Kind.ARRAYS})


class Placed(Made):
    """A table of a form with its pose."""

    def build(self) -> Any:
        return super().build(), self.made(Placing).pose


def _built(value: Any) -> Any:
    if isinstance(value, list):
        return [_built(x) for x in value]
    return value.build() if isinstance(value, Made) else value


@functools.cache
def table_of(
    cls: type, known: Classes, further: Classes = (), base: type[Made] = Made, typed: bool = True,
    only: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    """Table of a class, with the keys `type` (its name in snake case, if typed), the fields of the `further` classes,
    and its own fields.

    known: the classes that parts may have; base: base class of the table; only: the names of the fields that are keys, by
    default all. Defaults, kinds, units and documentation are those of the declarations.
    """
    fields: dict[str, Any] = {}
    if typed:
        name = type_name(cls)
        fields["type"] = (Literal[name], stated("word", "names the type"))
    for d in (d for c in (*further, cls) for d in declared(c) if not only or d.name in only):
        if d.kind is Kind.ARRAYS:  # optional: the table of a file has a key for them, or for their source, or none
            continue
        if d.key in fields or d.key in base.model_fields:
            raise TypeError(f"{cls.__name__}.{d.name}: this name has another meaning in a file; choose a different one")
        fields[d.key] = _entry(d, known, cls)
    made = create_model(f"{cls.__name__}Table", __base__=base, __doc__=cls.__doc__, **fields)
    made.makes = cls
    return made


def any_of(family: type | Classes, known: Classes, besides: type | None = None, **options: Any) -> Any:
    """Annotation of a table whose `type` names one of the known classes of a family, or of several families. besides: a
    class that is left out; options: those of `table_of`."""
    return either([table_of(c, known, **options) for c in in_files(family, known) if c is not besides])


def either(tables: Sequence[Any]) -> Any:
    """Annotation of a table that is one of these, which its `type` tells."""
    return Annotated[functools.reduce(operator.or_, tables), Field(discriminator="type")]


def in_files(family: type | Classes, known: Iterable[type]) -> list[type]:
    """The known classes of a family that can be written in a file: those that need no arrays and are not base
    classes."""
    bases = family if isinstance(family, tuple) else (family,)
    found = [c for c in known if issubclass(c, bases) and c not in bases and "abstract" not in vars(c)]
    return [c for c in found if not any(d.kind is Kind.ARRAYS and d.required for d in declared(c))]


def _entry(d: Declared, known: Classes, owner: type) -> tuple[Any, Any]:
    if d.kind is Kind.PARTS:  # none is of the owner's class, since tables would then contain tables without end
        assert d.of is not None
        options: Any = {"further": (Placing,), "base": Placed} if issubclass(owner, Compound) else {}
        kind: Any = Annotated[list[any_of(d.of, known, besides=owner, **options)], Field(min_length=1)]
    elif d.kind in (Kind.PART, Kind.FIXED_PART):
        assert d.of is not None
        kind = any_of(d.of, known) if in_files(d.of, known) else table_of(d.of, known, typed=False)
    elif d.kind is Kind.LIST:
        kind = numbers_in_file(d.unit)
    else:
        kind = Literal[d.choices] if d.kind is Kind.CHOICE else IN_FILE[d.kind]
    default: Any = ... if d.required else d.default
    if default is None:
        kind = kind | None
    return kind, stated(" | ".join(d.choices) or str(d.kind), d.doc, unit=d.unit, default=default)
