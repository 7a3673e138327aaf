"""Which modules and definitions of a package are reached from its entry points, by names alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Module", "Package"]

_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Decorators that register nothing: a definition with another one is used where its module is.
_PLAIN = frozenset({
    "cache", "cached_property", "contextmanager", "dataclass", "final", "lru_cache", "overload",
    "runtime_checkable", "total_ordering",
})  # fmt: skip
# Base classes of other packages that call no method of a subclass.
_PASSIVE = frozenset({
    "ABC", "Enum", "Exception", "Generic", "NamedTuple", "Protocol", "StrEnum", "ValueError",
})  # fmt: skip


@dataclass
class Module:
    """One source.

    Attributes:
        tree: of it.
        imports: module and name (None: the module itself) that each imported name stands for.
        definitions: top-level functions, classes and constants, each with its statements.
        run: statements that importing the module runs, and names that it registers.
    """

    tree: ast.Module
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    run: list[ast.AST] = field(default_factory=list)
    registered: list[str] = field(default_factory=list)


class Package:
    """Sources, of which `use_module` and `use_name` mark what entry points use.

    Args:
        sources: by path, such as `driple/cli/main.py`.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.modules: dict[str, Module] = {}
        for path, source in sources.items():
            parts = path.removesuffix(".py").split("/")
            inside = parts[:-1]
            if parts[-1] == "__init__":
                parts = parts[:-1]
            self.modules[".".join(parts)] = _module(ast.parse(source), inside)
        self._used_modules: set[str] = set()
        self._used: set[tuple[str, str]] = set()
        self._attributes: set[str] = set()
        self._todo: list[tuple[str, ast.AST]] = []
        self._methods: list[tuple[str, str, ast.stmt]] = []

    def modules_not_reached(self) -> list[str]:
        """Names of modules that no reached module imports."""
        return sorted(self.modules.keys() - self._used_modules)

    def definitions_not_reached(self) -> list[str]:
        """Names of definitions and methods of reached modules that no reached code uses."""
        names = [
            f"{module}.{name}"
            for module in self._used_modules
            for name in self.modules[module].definitions
            if (module, name) not in self._used
        ]
        methods = [
            f"{module}.{owner}.{method.name}"
            for module, owner, method in self._methods
            if isinstance(method, _FUNCTION)
        ]
        return sorted(names + methods)

    def use_module(self, name: str) -> None:
        """A module is imported, with the packages that it is in."""
        if name in self._used_modules or name not in self.modules:
            return
        self._used_modules.add(name)
        self.use_module(name.rpartition(".")[0])
        module = self.modules[name]
        self._todo += [(name, node) for node in module.run]
        for registered in module.registered:
            self.use_name(name, registered)

    def use_name(self, module: str, name: str) -> None:
        """Code of a module uses a name that it defines or imports."""
        resolved = self._resolve(module, name)
        if resolved is None:
            return
        home, own = resolved
        self.use_module(home)
        if own is None or (home, own) in self._used:
            return
        self._used.add((home, own))
        self._todo += [(home, node) for node in self.modules[home].definitions[own]]

    def use_path(self, path: str) -> None:
        """A definition, or method, by its full name."""
        module, _, name = path.rpartition(".")
        if module not in self.modules:
            self._attributes.add(name)
            module, _, name = module.rpartition(".")
        self.use_name(module, name)

    def follow(self) -> None:
        """Mark all that the marked definitions use."""
        while True:
            while self._todo:
                module, node = self._todo.pop()
                if isinstance(node, ast.ClassDef):
                    self._follow_class(module, node)
                else:
                    self._scan(module, node)
            called = [method for method in self._methods if self._is_called(*method)]
            if not called:
                return
            self._methods = [method for method in self._methods if method not in called]
            self._todo += [(module, method) for module, _, method in called]

    def _follow_class(self, module: str, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self._scan(module, part)
        for inner in node.body:
            if isinstance(inner, _FUNCTION) and not inner.name.startswith("__"):
                self._methods.append((module, node.name, inner))
            elif isinstance(inner, ast.ClassDef):
                self._follow_class(module, inner)
            else:
                self._scan(module, inner)

    def _is_called(self, module: str, owner: str, method: ast.stmt) -> bool:
        assert isinstance(method, _FUNCTION)
        return method.name in self._attributes or self._has_foreign_base(module, owner)

    def _has_foreign_base(self, module: str, name: str) -> bool:
        """Whether a class has a base of another package, which may call its methods."""
        for node in self.modules[module].definitions.get(name, []):
            for base in node.bases if isinstance(node, ast.ClassDef) else ():
                plain = base.value if isinstance(base, ast.Subscript) else base
                if not isinstance(plain, ast.Name):
                    return True
                home = self._resolve(module, plain.id)
                if home is None and plain.id not in _PASSIVE:
                    return True
                if home is not None and self._has_foreign_base(home[0], home[1] or ""):
                    return True
        return False

    def _resolve(
        self, module: str, name: str, seen: frozenset[tuple[str, str]] = frozenset()
    ) -> tuple[str, str | None] | None:
        """Where a name of a module is defined; None as second of a module; None of others'."""
        if module not in self.modules or (module, name) in seen:
            return None
        own = self.modules[module]
        if name in own.definitions:
            return module, name
        source, original = own.imports.get(name, (f"{module}.{name}", None))
        if original is None:
            return (source, None) if source in self.modules else None
        again = self._resolve(source, original, seen | {(module, name)})
        if again is None and f"{source}.{original}" in self.modules:
            return f"{source}.{original}", None
        return again

    def _scan(self, module: str, tree: ast.AST) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                self.use_name(module, node.id)
            elif isinstance(node, ast.Attribute):
                self._attributes.add(node.attr)
                self._use_attribute(module, node)
            elif isinstance(node, ast.ImportFrom | ast.Import):
                for source in _sources_of(node):
                    self.use_module(source)
                    for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                        self.use_module(f"{source}.{alias.name}")
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._use_text(module, node.value)
            elif isinstance(node, ast.JoinedStr):
                self._use_prefix(module, node)

    def _use_attribute(self, module: str, node: ast.Attribute) -> None:
        """`a.b.c` of a module `a` uses the name `b` of it."""
        names, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        home = self._resolve(module, inner.id) if isinstance(inner, ast.Name) else None
        while home is not None and home[1] is None and names:
            name = names.pop()
            self.use_name(home[0], name)
            home = self._resolve(home[0], name)

    def _use_text(self, module: str, text: str) -> None:
        """A string may name a module, an attribute, or a type of the module that has it."""
        self.use_module(text)
        if text.isidentifier():
            self._attributes.add(text)
            if text[0].isupper():
                self.use_name(module, text)

    def _use_prefix(self, module: str, node: ast.JoinedStr) -> None:
        """`f"driple.cli.{name}"` imports modules, and their definitions, that strings name."""
        first = node.values[0] if node.values else None
        prefix = first.value if isinstance(first, ast.Constant) else ""
        if not isinstance(prefix, str) or not prefix.startswith("driple.") or prefix[-1] != ".":
            return
        texts = {
            part.value
            for part in ast.walk(self.modules[module].tree)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        }
        for name in self.modules:
            if name.startswith(prefix) and name.removeprefix(prefix) in texts:
                self.use_module(name)
                for text in texts & self.modules[name].definitions.keys():
                    self.use_name(name, text)


def _module(tree: ast.Module, inside: list[str]) -> Module:
    module = Module(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            if node.level:  # from now on the name is absolute
                kept = inside[: len(inside) - node.level + 1]
                node.module, node.level = ".".join([*kept, *filter(None, [node.module])]), 0
            for alias in node.names:
                module.imports[alias.asname or alias.name] = (node.module or "", alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                module.imports[alias.asname or name] = (name, None)
    _sort(tree.body, module)
    return module


def _sort(body: Iterable[ast.stmt], module: Module) -> None:
    """Top-level statements: definitions, or run at once."""
    for node in body:
        if isinstance(node, _DEFINITION):
            module.definitions.setdefault(node.name, []).append(node)
            if node.name.startswith("__") or any(
                _decorator(call) not in _PLAIN for call in node.decorator_list
            ):
                module.registered.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [
                name.id for target in targets for name in ast.walk(target)
                if isinstance(name, ast.Name)
            ]  # fmt: skip
            for name in names if names != ["__all__"] else ():
                module.definitions.setdefault(name, []).append(node)
        elif isinstance(node, ast.If | ast.Try):
            _sort([*node.body, *node.orelse], module)
            if isinstance(node, ast.If):
                module.run.append(node.test)
            else:
                for handler in node.handlers:
                    _sort(handler.body, module)
        else:
            module.run.append(node)


def _decorator(node: ast.expr) -> str:
    inner = node.func if isinstance(node, ast.Call) else node
    return inner.attr if isinstance(inner, ast.Attribute) else ast.unparse(inner)


def _sources_of(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names]
