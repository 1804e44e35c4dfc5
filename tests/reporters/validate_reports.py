"""Validates reports: JSON against the schema in docs/, SARIF and JUnit against what their readers insist on.

usage: validate_reports.py SCHEMA WRITER
WRITER is a program that writes sample reports into the folder it is given.
"""

import copy
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema


def closed(schema):
    """The schema with no property allowed that it does not describe: what we write must all be documented."""
    if isinstance(schema, dict):
        schema = {key: closed(value) for key, value in schema.items()}
        # A schema that builds on another one by allOf sees the other's properties as unknown.
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        if "allOf" in schema:
            schema.pop("allOf")
        return schema
    if isinstance(schema, list):
        return [closed(value) for value in schema]
    return schema


def refuses(validator, report, change):
    """A schema that accepts everything would be no test."""
    broken = copy.deepcopy(report)
    change(broken)
    if validator.is_valid(broken):
        sys.exit(f"the schema accepts a broken report: {change.__name__}")


def drop_verdict(report):
    del report["verdict"]


def raw_number_as_text(report):
    report["findings"][0]["evidence"]["norm_seen"] = None


def unknown_severity(report):
    report["findings"][0]["severity"] = "fatal"


def check_json(folder, schema):
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    open_validator, closed_validator = validator(schema), validator(closed(schema))
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        for checker in (open_validator, closed_validator):
            for error in checker.iter_errors(report):
                sys.exit(f"{path.name}: {error.json_path}: {error.message}")
    report = json.loads((folder / "clipped_while_scaled.json").read_text(encoding="utf-8"))
    for change in (drop_verdict, raw_number_as_text, unknown_severity):
        refuses(open_validator, report, change)


def check_sarif(folder):
    for path in sorted(folder.glob("*.sarif")):
        log = json.loads(path.read_text(encoding="utf-8"))
        assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json"), path
        (run,) = log["runs"]
        rules = run["tool"]["driver"]["rules"]
        assert run["tool"]["driver"]["name"] == "ampscope", path
        prints = [result["partialFingerprints"]["ampscope/v1"] for result in run["results"]]
        assert len(set(prints)) == len(prints), path
        for result in run["results"]:
            assert result["message"]["text"], path
            assert result["level"] in ("error", "warning", "note"), path
            if "ruleIndex" in result:
                assert rules[result["ruleIndex"]]["id"] == result["ruleId"], path


def check_junit(folder):
    for path in sorted(folder.glob("*.xml")):
        suites = ElementTree.parse(path).getroot()
        cases = list(suites.iter("testcase"))
        assert int(suites.get("tests")) == len(cases) > 0, path
        failed = [case for case in cases if case.find("failure") is not None]
        assert int(suites.get("failures")) == len(failed), path


def main():
    schema_path, writer = Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([writer, name], check=True)
        assert len(list(folder.glob("*.json"))) >= 7, "no reports were written"
        check_json(folder, json.loads(schema_path.read_text(encoding="utf-8")))
        check_sarif(folder)
        check_junit(folder)


if __name__ == "__main__":
    main()
