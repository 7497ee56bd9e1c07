"""The planted bugs below tests/mutants: what their headers say, and whether they still fit.

A mutant is tests/mutants/PART/NAME.patch. Its header comes before the diff: one sentence that says what the mutant
breaks, and lines of `key: value`, which an indented line continues.

    contract  the rule of docs/guarantees.md, by number or heading, and the sentence that is broken; or another file
    found by  the names of the ctest tests that have to fail, as a regular expression; a part of a suite that ctest
              runs as one test, such as conformance.redis, as `conformance.redis -- Order.*`
    targets   what to build, if the names of the tests do not say it
    patch     the diff, if it stands in another file
    hangs     yes, if a test that never ends counts as failed
"""
import dataclasses
import pathlib
import re
import subprocess

PARTS = ("core", "memory", "file", "redis", "redlock", "postgres", "etcd", "command", "recipes")
KEYS = ("contract", "found by", "targets", "patch", "hangs")
# The executable that has the tests whose names begin so.
EXECUTABLES = (("unit.", "unit_tests"), ("simulation.", "simulation_tests"), ("conformance.", "conformance_tests"),
               ("recipes.", "recipe_tests"), ("redis.", "redis_tests"), ("postgres.", "postgres_tests"),
               ("etcd.", "etcd_tests"), ("rules.", "rules_walk"), ("process.cli_", "interlock_cli"), ("process.", "process_tests"))


@dataclasses.dataclass
class Mutant:
    path: pathlib.Path
    breaks: str
    header: dict
    diff: pathlib.Path

    @property
    def part(self):
        return self.path.parent.name

    @property
    def name(self):
        return f"{self.part}/{self.path.stem}"

    @property
    def check(self):
        """The regular expression of ctest names, and which tests of a suite that is one of them."""
        names, _, only = self.header["found by"].partition(" -- ")
        return names.strip(), only.strip()

    @property
    def alternatives(self):
        """What stands between the bars of the regular expression that are in no parentheses."""
        depth, parts = 0, [""]
        for letter in self.check[0]:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if letter == "|" and depth == 0:
                parts.append("")
            else:
                parts[-1] += letter
        return parts

    @property
    def checks(self):
        """What has to pass without the bug: mutants share tests, and each needs to run once."""
        names, only = self.check
        return [(names, only)] if only else [(each, "") for each in self.alternatives]

    @property
    def targets(self):
        if "targets" in self.header:
            return self.header["targets"].split()
        names = [each.replace("\\", "") for each in self.alternatives]
        found = {next((target for start, target in EXECUTABLES if name.startswith(start)), "") for name in names}
        return sorted(found - {""})

    @property
    def files(self):
        return set(re.findall(r"^diff --git a/(\S+) b/", self.diff.read_text(), re.MULTILINE))


def read(path, root):
    """A mutant, or a ValueError that says what is wrong with its header."""
    head = re.split(r"^diff --git ", path.read_text(), maxsplit=1, flags=re.MULTILINE)[0]
    breaks, header, key = [], {}, None
    for line in head.splitlines():
        found = re.match(r"(%s): (.*)" % "|".join(KEYS), line)
        if found:
            key = found[1]
            header[key] = found[2]
        elif key and line.startswith("  "):
            header[key] += " " + line.strip()
        elif not header and line:
            breaks.append(line)
        elif line:
            raise ValueError(f"its header has a line that is no part of it: {line}")
    for key in ("contract", "found by"):
        if not header.get(key):
            raise ValueError(f"its header has no `{key}:`")
    if not breaks:
        raise ValueError("its header does not begin with what it breaks")
    diff = root / header["patch"] if "patch" in header else path
    mutant = Mutant(path, " ".join(breaks), header, diff)
    if not diff.is_file() or not mutant.files:
        raise ValueError(f"{diff} has no diff")
    if not mutant.targets:
        raise ValueError("the names of its tests do not say what to build: add `targets:`")
    return mutant


def read_all(root):
    """All mutants, and the problems of those that can't be read."""
    mutants, problems = [], []
    for path in sorted((root / "tests" / "mutants").glob("*/*.patch")):
        name = f"{path.parent.name}/{path.stem}"
        if path.parent.name not in PARTS:
            problems.append(f"{name}: there is no such part: {', '.join(PARTS)}")
            continue
        try:
            mutants.append(read(path, root))
        except ValueError as error:
            problems.append(f"{name}: {error}")
    return mutants, problems


def select(mutants, only):
    """Those that are named, as PART or PART/NAME, in that order; all if nothing is."""
    named = {}
    for each in only:
        found = {m.name: m for m in mutants if each in (m.part, m.name)}
        if not found:
            raise ValueError(f"no mutant is called '{each}'")
        named |= found
    return list(named.values()) if only else mutants


def contract_problem(mutant, root):
    """None, or that the contract does not say this sentence there."""
    where, _, sentence = mutant.header["contract"].partition(": ")
    page = root / where if "/" in where else root / "docs" / "guarantees.md"
    if not page.is_file():
        return f"there is no page {where}"
    text = page.read_text()
    if "/" not in where:
        sections = re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]
        text = "".join(s for s in sections if re.match(r"%s(\.|\n)" % re.escape(where), s))
        if not text:
            return f"docs/guarantees.md has no rule or heading '{where}'"
    if len(sentence.split()) < 3:
        return "its header names no sentence of the contract"
    if " ".join(sentence.split()) not in " ".join(text.split()):
        return f"'{where}' does not say: {sentence}"
    return None


def row(mutant):
    """Its row in the table of docs/proof.md."""
    where = mutant.header["contract"].partition(": ")[0]
    if where.isdigit():
        where = f"rule {where}"
    names = " ".join(mutant.check).strip().replace("\\", "").replace("|", "\\|")
    return f"| `{mutant.name}` | {mutant.breaks} | {where} | `{names}` |"


def apply_problem(mutant, source):
    """None, or why the diff does not apply to this tree."""
    done = subprocess.run(["git", "-C", source, "apply", "--check", mutant.diff], capture_output=True, text=True)
    return None if done.returncode == 0 else "does not apply: " + " ".join(done.stderr.split())
