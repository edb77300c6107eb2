# SPDX-License-Identifier: MIT
"""flexsc study report: each figure and table of the papers beside the numbers of our
own benches, on one page.

    figure      a figure, its state, rows and verdicts
    runs        the files of measurements that a report is made of
    shown       a figure with its rows from these files
    osdi, costs, atc, geneves, send
                the figures of each paper; figures has all, in the index's order
    counted, efficiency
                the papers' tables that counts and counters measure
    study       the web server study, for geneves and atc
    sweeps      servers against the number of their clients
    measure     measures the figures that are missing in all files
    draw        drawings, if matplotlib is installed
    page        HTML
    record      report.json
"""
