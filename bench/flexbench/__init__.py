# SPDX-License-Identifier: MIT
"""flexbench: runs "flexsc bench --raw" for each variant alternately, keeps the raw
samples, and compares them. The study (flexstudy) imports it; it imports nothing of the
study.

    calls, timers, reads, serve, threads
                the benches: measuring, and their tables
    command     the command line
    machine     the machine, and the choice of cores
    samples     measurements, and the file that keeps them
    compare     medians, ratios, and their intervals
    runner      one variant after the other, round after round
    network     networks between a server and its clients
    quiet       other processes' use of the measured cores
    sweep       servers against the number of their clients
    pair        two servers of the same file
    idle        the part of threads that measures idle connections
    servers     flexsc serve and nginx, side by side
    running     programs natively and under flexsc run
    examples    the example servers that threads measures
    clients     the load generators: wrk and rounds
    tools       other programs, and parsing their output
    table       tables for people
"""
