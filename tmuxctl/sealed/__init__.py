"""End-to-end encryption between one client and one host, whatever carries the bytes: keys, pairing, handshakes, records, events.

Nothing here knows a network: bytes go in and come out, and the files of keys are the only ones that are touched. It needs the
extra `gateway`.
"""
