# SPDX-License-Identifier: MIT
"""flexbench: has "flexsc bench --raw" measure alternately, keeps the raw samples,
and compares. The study (flexstudy) uses it; it uses nothing of the study.

    calls, timers, reads, serve, threads
                the benches: what is measured, and the table of it
    command     the command line
    machine     what it is measured on, and which cores are used
    samples     measurements, and the file that keeps them
    compare     medians, ratios, and how far they can be trusted
    runner      one variant after the other, round after round
    network     between a server and its clients
    quiet       who else used the core
    sweep       servers against the number of their clients
    pair        one server beside another
    idle        the part of threads that weighs idle connections
    servers     flexsc serve and nginx, side by side
    running     programs natively and under flexsc run
    examples    the example servers that threads measures
    clients     the load generators: wrk and rounds
    tools       other programs, and reading what they print
    table       for people
"""
