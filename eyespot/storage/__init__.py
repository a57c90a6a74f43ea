"""What lies on the disk: files and folders that are whole or not there, locks, SQLite, digests, and files people give.

No other room flushes, renames or locks.
"""
