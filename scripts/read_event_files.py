#!/usr/bin/env python3
"""Reads a folder of isomer-run --tensorboard with TensorBoard's own reader.

    scripts/read_event_files.py DIR [LOG.csv]

Prints each tag with its steps. With the table that --log_csv wrote in the same run, compares every
value; exit code 1 if one differs by more than a float's rounding, or is missing. Needs tensorboard.
"""
import csv
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

COLUMNS = {"loss": "train/loss", "learning_rate": "train/learning_rate", "step_us": "speed/step_us",
           "resident_bytes": "memory/resident_bytes"}


def main():
    events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
    events.Reload()
    scalars = {tag: {event.step: event.value for event in events.Scalars(tag)}
               for tag in events.Tags()["scalars"]}
    for tag, values in sorted(scalars.items()):
        print(f"{tag}: {len(values)} steps from {min(values)} to {max(values)}")
    if len(sys.argv) < 3:
        return 0
    with open(sys.argv[2], newline="") as file:
        rows = list(csv.DictReader(file))
    wrong = compared = 0
    for row in rows:
        for column, text in row.items():
            tag = f"test/{column[5:]}" if column.startswith("test_") else COLUMNS.get(column)
            if tag is None or not text:
                continue
            compared += 1
            found = scalars.get(tag, {}).get(int(row["step"]))
            if found is None or abs(found - float(text)) > 1e-6 * abs(float(text)):
                print(f"step {row['step']}: {column} is {text}, and {tag} {found}")
                wrong += 1
    print(f"{compared} values compared, {wrong} differ")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
