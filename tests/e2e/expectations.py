"""What a program says about itself in its comments, and whether a report agrees.

    # expect: AMP202 error source=clip op=aten::* symptoms=AMP302  the finding that stands first, what is known of it
    # expect: quiet                             nothing of warning or error
    # note: AMP301                              an info that must be there as well
    # levels: grads auto full                   where to look (default: auto)
    # arguments: --steps 60      # environment: NAME=value NAME=value      # needs: g++ python:timm      # exit: 3
    # launch: torch.distributed.run --nproc-per-node 2      a module that starts the program (python -m …)
    # traces: 2                                 files that the run leaves (default 1)

`source=clip` is the line of the program that ends with `# <- clip`; alternatives stand as `source=clip|norm`. Values
other than the source may hold wildcards; `none` stands for null. A program that prints "K of N steps skipped" is an
independent witness of both numbers.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from harness import LEVELS

SEVERITIES = ("info", "warning", "error")
KEYS = {"source", "op", "module", "parameter", "phase", "symptoms", "first", "count", "precision_fault"}


@dataclass
class Expectation:
    rule: str
    severity: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass
class Header:
    """The machine-readable comments of a program."""

    path: Path
    expected: list[Expectation] = field(default_factory=list)
    quiet: bool = False
    notes: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=lambda: ["auto"])
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    needs: list[str] = field(default_factory=list)
    launch: list[str] = field(default_factory=list)
    exit: int = 0
    traces: int = 1
    marks: dict[str, int] = field(default_factory=dict)


def read_header(path: Path) -> Header:
    header = Header(path)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if mark := re.search(r"# <- ([\w-]+)$", line):
            header.marks[mark[1]] = number
        if not (comment := re.match(r"# ([a-z]+): (.+)$", line)):
            continue
        key, value = comment[1], shlex.split(comment[2])
        match key:
            case "expect" if value == ["quiet"]:
                header.quiet = True
            case "expect":
                header.expected.append(read_expectation(value, path))
            case "note":
                header.notes += value
            case "levels":
                header.levels = value
            case "arguments":
                header.arguments = value
            case "environment":
                header.environment = dict(item.split("=", 1) for item in value)
            case "needs":
                header.needs = value
            case "launch":
                header.launch = value
            case "exit":
                header.exit = int(value[0])
            case "traces":
                header.traces = int(value[0])
            case _:
                raise SystemExit(f"{path}:{number}: unknown key {key!r}")
    if not header.expected and not header.quiet:
        raise SystemExit(f"{path}: no '# expect:' line")
    if unknown := set(header.levels) - set(LEVELS):
        raise SystemExit(f"{path}: no such level: {', '.join(unknown)}")
    return header


def read_expectation(words: list[str], path: Path) -> Expectation:
    rule, *rest = words
    expectation = Expectation(rule)
    for word in rest:
        if word in SEVERITIES:
            expectation.severity = word
        else:
            key, value = word.split("=", 1)
            if key not in KEYS:
                raise SystemExit(f"{path}: unknown property {key!r}")
            expectation.properties[key] = value
    return expectation


def disagreements(header: Header, report: dict, stdout: str) -> list[str]:
    """One sentence for each point in which the report is not what the program expects."""
    wrong = []
    findings = report["findings"]
    serious = [finding for finding in findings if finding["severity"] != "info"]
    infos = {finding["rule"] for finding in findings if finding["severity"] == "info"}

    if header.quiet and serious:
        wrong.append(f"it is healthy, but the report says {describe(serious)}")
    if not header.quiet:
        # Those expected come first; nothing else may stand beside them.
        for position, expectation in enumerate(header.expected):
            if position >= len(findings):
                wrong.append(f"{expectation.rule} was not found")
            else:
                wrong += differences(expectation, findings[position], header)
        if len(serious) > len(header.expected):
            wrong.append(f"beside the expected: {describe(serious[len(header.expected) :])}")
    wrong += [f"the note {rule} is missing" for rule in header.notes if rule not in infos]

    run = report["run"]
    if run["dropped"] and "AMP902" not in {expectation.rule for expectation in header.expected}:
        wrong.append(f"{run['dropped']} events were dropped")
    if told := re.search(r"(\d+) of (\d+) steps skipped", stdout):
        if run["steps"] != int(told[2]):
            wrong.append(f"the program took {told[2]} steps, the report counts {run['steps']}")
        if len(run["skipped_steps"]) != int(told[1]):
            wrong.append(f"the program saw {told[1]} skipped steps, the report {len(run['skipped_steps'])}")
    return wrong


def differences(expectation: Expectation, finding: dict, header: Header) -> list[str]:
    if finding["rule"] != expectation.rule:
        return [f"{expectation.rule} was expected, the report says {describe([finding])}"]
    wrong = []

    def check(name: str, expected: str, found: object) -> None:
        text = "none" if found is None else str(found)
        if not any(fnmatch.fnmatchcase(text, pattern) for pattern in expected.split("|")):
            wrong.append(f"{expectation.rule}: {name} {expected} was expected, the report says {text}")

    if expectation.severity:
        check("severity", expectation.severity, finding["severity"])
    for key, value in expectation.properties.items():
        match key:
            case "source" if value == "none":
                check("source", "none", finding["culprit"]["source"])
            case "source":
                lines = "|".join(f"*{header.path.name}:{header.marks[mark]}" for mark in value.split("|"))
                check("source", lines, finding["culprit"]["source"])
            case "symptoms":
                missing = set(value.split(",")) - set(finding["symptoms"])
                if missing:
                    wrong.append(f"{expectation.rule}: it does not explain {', '.join(sorted(missing))}")
            case "first" | "count":
                check(key, value, finding["steps"][key])
            case "precision_fault":
                check(key, value, str(finding["precision_fault"]).lower())
            case _:
                check(key, value, finding["culprit"][key])
    return wrong


def describe(findings: list[dict]) -> str:
    return ", ".join(
        f"{finding['rule']} {finding['severity']} at {finding['culprit']['source'] or 'no line'} ({finding['title']})"
        for finding in findings
    )
