#!/usr/bin/env python3
"""A pipeline on 128 devices as --dot, --timeline, --trace and --json: small, legible, well-formed.

Usage: pictures_test.py BIN
"""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"


def check_dot(path):
    text = open(path).read()
    assert len(text) < 200_000, len(text)
    assert "layer*/attention/query" in text, "layers are not folded"
    for said in ("devices 0 to 7", "16 ranges", "micro-batches", " forward", "x 32"):
        assert said in text, said
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg", path, "-o", os.devnull], check=True)


def check_timeline(path):
    assert os.path.getsize(path) < 1_000_000, os.path.getsize(path)
    root = xml.parse(path).getroot()
    texts = [text.text for text in root.iter(SVG + "text")]
    for stage in range(16):
        first = 8 * stage
        assert f"stage {stage}: {first} of {first} to {first + 7}" in texts, texts
    assert sum(text.endswith(" ms") for text in texts) >= 4, "no axis"
    assert "critical path" in texts
    assert any("backward" in title.text for title in root.iter(SVG + "title"))
    width = float(root.get("width"))
    for bar in root.iter(SVG + "rect"):
        if not bar.get("width").endswith("%"):
            assert float(bar.get("x")) + float(bar.get("width")) <= width


def check_trace(path):
    """Against the trace event format: spans, metadata, arrows in pairs within spans, counters."""
    events = json.load(open(path))["traceEvents"]
    phases = collections.defaultdict(list)
    for event in events:
        phases[event["ph"]].append(event)
    assert set(phases) == set("XMsfC"), set(phases)
    names = {e["pid"]: e["args"]["name"] for e in phases["M"] if e["name"] == "process_name"}
    assert names[8] == "device 8 (stage 1: 8 to 15)", names
    spans = collections.defaultdict(list)
    for span in phases["X"]:
        assert span["dur"] >= 0 and span["pid"] in names, span
        assert span["args"]["bytes"] >= 0 and "->" in span["args"]["types"], span
        spans[span["pid"], span["tid"]].append((span["ts"], span["ts"] + span["dur"]))
    assert any(span["args"].get("flops", 0) > 1e9 for span in phases["X"])
    starts = {e["id"]: e for e in phases["s"]}
    ends = {e["id"]: e for e in phases["f"]}
    assert len(starts) == len(phases["s"]) and starts.keys() == ends.keys()
    for arrow in list(starts)[:200]:
        assert starts[arrow]["ts"] <= ends[arrow]["ts"] + 0.002, arrow
        for event in (starts[arrow], ends[arrow]):
            row = spans[event["pid"], event["tid"]]
            assert any(a - 0.002 <= event["ts"] <= b + 0.002 for a, b in row), event
    for counter in phases["C"]:
        assert all(value >= 0 for value in counter["args"].values()), counter
    assert {e["pid"] for e in phases["C"]} == {8 * stage for stage in range(16)}
    assert max(sum(e["args"].values()) for e in phases["C"]) > 2**30


def check_summary(path):
    summary = json.load(open(path))
    placements = summary["placements"]
    assert len(placements) > 32 * 10
    assert all(0 <= p["first_device"] <= p["last_device"] < 128 for p in placements)
    assert {p["first_device"] for p in placements} >= {8 * stage for stage in range(16)}


def main():
    program = os.path.join(os.path.abspath(sys.argv[1]), "isomer-optimize")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run(
            [program, "zoo:gpt_175b?layers=32&hidden=4096&heads=32", "--batch_size=128",
             "--machine=dgx_h100", "--nodes=16", "--plan=grid", "--pipeline=16", "--tensor=4",
             "--precision=bfloat16", "--loss_alone", "--out=p.plan", "--dot=p.dot",
             "--timeline=p.svg", "--trace=p.trace", "--json=p.json"],
            check=True, stdout=subprocess.DEVNULL)
        check_dot("p.dot")
        check_timeline("p.svg")
        check_trace("p.trace")
        check_summary("p.json")
    print("pictures of 128 devices are small and well-formed")


main()
