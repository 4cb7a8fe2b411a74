#!/usr/bin/env python3
"""Tokens for isomer-run --data from text files: each byte is one, as uint16, as nanoGPT's train.bin.

  scripts/tokens_of_text.py licences.bin /usr/share/common-licenses/*
"""
import array
import sys

tokens = array.array("H")
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        tokens.extend(file.read())
if sys.byteorder == "big":
    tokens.byteswap()
with open(sys.argv[1], "wb") as file:
    tokens.tofile(file)
print(f"{sys.argv[1]}: {len(tokens)} tokens below 256")
