# SPDX-License-Identifier: MIT
"""flexbench: has "flexsc bench --raw" measure alternately, keeps the raw samples,
and compares.

    machine     what it is measured on, and which cores are used
    samples     measurements, and the file that keeps them
    compare     medians, ratios, and how far they can be trusted
    runner      one variant after the other, round after round
    network     between a server and its clients
    quiet       who else used the core
    calls, cost, memory, timers, reads, send, serve, threads, programs, counts,
    counters, generator
                the benches: what is measured, and the table of it
    study       the bench of one web server, driven in several ways, a package
    sweep, under_load
                servers against the number of their clients, and one under load
    entries, loops
                parts of programs: Apache by entries, programs with an event loop
    nginx       with the module and without it; pair is what it and serve share
    overload    a server that is offered more than it can do; overload_plan,
                overload_table and overload_plot belong to it, and so does mix,
                the sizes of files
    idle        the part of threads that weighs idle connections
    servers     flexsc serve and nginx, side by side
    running     programs natively and under flexsc run
    examples    the example servers that threads measures
    papers      the papers' numbers, from the folder of that name
    apache, mariadb
                the real programs that programs measures
    clients     the load generators: wrk, sysbench and rounds
    tools       other programs, and reading what they print
    table, plot for people; chart and matplot draw what plot and report show
    report      flexsc report: the papers' figures beside ours, a package
"""
