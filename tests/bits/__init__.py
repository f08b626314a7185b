"""Recorded bits: hashes of small studies that no change of the code may touch. How to use them: record.py."""
